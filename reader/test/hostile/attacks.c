/* Single values that once led the reader out of its own memory, around in cycles, or through terabytes of empty
 * memory. */
#define _GNU_SOURCE
#define CHECK_SECONDS 3600 /* dozens of readings on a busy machine */
#include "victim.h"

static const char *const modes[] = {NULL, "--stop", "--live"};
#define MODES (sizeof modes / sizeof *modes)

/* Limit for the plain reader, on processes of a few megabytes. */
#define MOST_BYTES (UINT64_C(96) << 20)

/* Limit for the reader's processor time in all pauses, in seconds. */
#define MOST_PAUSED 2

/* The reader under the sanitizers succeeds in the modes, and the plain reader within the limits. */
static void check_in_modes(const struct victim *victim, size_t first, size_t end)
{
    long kilobytes;

    for (size_t i = first; i < end; i++) {
        struct result result = read_sanitized(victim->pid, modes[i], &kilobytes);
        CHECK(result.status == 0 && !result.errors[0], "%s: the reader ended with %d: %.1500s",
              modes[i] ? modes[i] : "sliced", result.status, result.errors);
        CHECK(kilobytes < MOST_KILOBYTES, "the reader took %ld KB", kilobytes);
        check_stream(&result);
        free(result.stream);
    }
    struct result result = read_complete("", victim->pid);
    CHECK(number_of(&result, "reading", 0, "peak_rss_bytes") < MOST_BYTES, "the reader took %lu bytes",
          (unsigned long)number_of(&result, "reading", 0, "peak_rss_bytes"));
    CHECK(number_of(&result, "reading", 0, "paused_cpu_seconds") <= MOST_PAUSED,
          "the process was paused for %lu seconds of work",
          (unsigned long)number_of(&result, "reading", 0, "paused_cpu_seconds"));
    free(result.stream);
}

static void check_attack(const struct victim *victim)
{
    check_in_modes(victim, 0, MODES);
}

/* One of many values of the same word: each mode meets some of them, or with `make test-all` all. */
static void check_value(const struct victim *victim, size_t number)
{
    size_t mode = check_rounds(1, 0) ? number % MODES : 0;

    check_in_modes(victim, mode, mode + check_rounds(1, MODES));
}

static struct words words_of(const struct victim *victim, const char *group)
{
    for (size_t i = 0; i < victim->image.count; i++)
        if (strcmp(victim->image.groups[i].name, group) == 0)
            return victim->image.groups[i].words;
    CHECK(false, "the process has no %s", group);
    return (struct words){0};
}

/* ---- glibc's ---- */

/* A program wrote 16 bytes beyond the last block of the heap. */
TEST(an_overflow_into_top)
{
    static const uint64_t sizes[] = {UINT64_C(0x4141414141414141), UINT64_MAX, UINT64_C(1) << 47 | 1,
                                     (UINT64_C(8) << 40) | 1, UINT64_C(0) - 0x20fe0};
    struct victim victim = start_victim("heap mixed 3 1");

    struct words tops = words_of(&victim, "tops");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t before[64];
        for (size_t top = 1; top < tops.count && top < 64; top += 2) {
            before[top] = word_of(&victim, tops.all[top]);
            set_word(&victim, tops.all[top], sizes[i]);
        }
        check_value(&victim, i);
        for (size_t top = 1; top < tops.count && top < 64; top += 2)
            set_word(&victim, tops.all[top], before[top]);
    }
    finish(&victim);
}

/* One arena is reported as broken, the others are complete. */
TEST(an_overflow_is_reported)
{
    struct victim victim = start_victim("heap mixed 1 1");

    struct words tops = words_of(&victim, "tops");
    set_word(&victim, tops.all[1], UINT64_C(0x4141414141414141));
    struct result result = read_complete("", victim.pid);
    CHECK(contains(&result, "\"broken\":true") && contains(&result, "The walk of the main arena"),
          "no problem is reported");
    CHECK(number_of(&result, "malloc", 0, "chunks") > 100, "the blocks before it are missing");
    finish(&victim);
}

TEST(a_circular_list_of_heaps)
{
    struct victim victim = start_victim("heap mixed 3 1");

    struct words heaps = words_of(&victim, "heads of heaps");
    for (size_t i = 0; i < heaps.count; i += 6)
        set_word(&victim, heaps.all[i] + 8, heaps.all[i]);
    check_attack(&victim);
    finish(&victim);
}

static const uint64_t top_at = 96, next_at = 2064 + 96, system_at = 2088 + 96; /* of glibc 2.27 to 2.42 */

/* The address of a word of the arena, by its value: its offset differs between releases. */
static uint64_t find_value(const struct victim *victim, uint64_t arena, uint64_t value, uint64_t likely)
{
    if (word_of(victim, arena + likely) == value)
        return arena + likely;
    for (uint64_t at = arena; at < arena + 2208; at += 8)
        if (word_of(victim, at) == value)
            return at;
    CHECK(false, "the arena has no word of 0x%lx", (unsigned long)value);
    return 0;
}

TEST(a_circular_list_of_arenas_without_the_first)
{
    struct victim victim = start_victim("heap mixed 4 1");

    struct result result = read_process("", victim.pid);
    uint64_t second = number_of(&result, "arena", 1, "address"), third = number_of(&result, "arena", 2, "address");
    set_word(&victim, find_value(&victim, second, third, next_at), second);
    check_attack(&victim);
    finish(&victim);
}

/* As before the first allocation: nothing is walked. */
TEST(an_arena_without_a_top)
{
    struct victim victim = start_victim("heap mixed 1 1");

    struct result result = read_process("", victim.pid);
    struct words tops = words_of(&victim, "tops");
    uint64_t field = find_value(&victim, number_of(&result, "arena", 0, "address"), tops.all[0], top_at);
    set_word(&victim, field, field);
    check_attack(&victim);
    finish(&victim);
}

/* The locks are never released. */
TEST(locked_arenas)
{
    struct victim victim = start_victim("heap mixed 4 1");

    struct result result = read_process("", victim.pid);
    for (unsigned i = 0; object(&result, "arena", i); i++)
        set_word(&victim, number_of(&result, "arena", i, "address"), 1);
    check_attack(&victim);
    finish(&victim);
}

/* The end of the chunk, with a header's bytes added, is address 0. */
TEST(a_large_chunk_up_to_the_last_address)
{
    struct victim victim = start_victim("heap large 2 12");

    struct words large = words_of(&victim, "large chunks");
    for (size_t i = 0; i < large.count; i += 4)
        set_word(&victim, large.all[i] + 8, (0 - large.all[i] - 16) | 2);
    check_attack(&victim);
    finish(&victim);
}

/* The main arena claims to have more memory, and every page looks like the start of a heap. */
TEST(chains_in_every_page)
{
    struct victim victim = start_victim("chains");

    struct result result = read_process("", victim.pid);
    uint64_t arena = number_of(&result, "arena", 0, "address"), system = number_of(&result, "arena", 0, "system_bytes");
    set_word(&victim, find_value(&victim, arena, system, system_at), UINT64_C(1) << 40);
    check_attack(&victim);
    finish(&victim);
}

/* ---- terabytes of empty memory ---- */

static uint64_t present_pages(const struct result *result, uint64_t least_bytes)
{
    struct record record;
    uint64_t pages = 0, count;
    bool chosen = false;

    for (size_t at = CULET_STREAM_MAGIC_BYTES; take_record(result, &at, &record);) {
        if (is_kind(&record, "mapping"))
            chosen = key_of(&record, "end") - key_of(&record, "start") >= least_bytes;
        if (record.type != 'P' || !chosen)
            continue;
        take_varint(&record);
        while (record.at < record.end) {
            count = take_varint(&record);
            pages += *record.at++ & 1 ? count : 0;
        }
    }
    return pages;
}

/* One page in eight terabytes is found at once; without PAGEMAP_SCAN it is not, which is reported. */
TEST(one_page_in_terabytes)
{
    struct victim victim = start_victim("heap mixed 1 1");

    if (!victim.reserved) {
        CHECK(true, "this system does not overcommit memory");
        return;
    }
    struct result result = read_complete("", victim.pid);
    CHECK(present_pages(&result, UINT64_C(1) << 40) == 1 || contains(&result, "The state of some pages of process"),
          "%lu pages are reported", (unsigned long)present_pages(&result, UINT64_C(1) << 40));
    reading_denied = SYS_ioctl;
    result = read_process("", victim.pid);
    check_stream(&result);
    CHECK(contains(&result, "The state of some pages of process"), "no problem is reported");
    CHECK(number_of(&result, "malloc", 0, "chunks") > 100, "the heap is missing");
    finish(&victim);
}

/* ---- culet's ---- */

struct culet_victim {
    struct victim victim;
    struct culet_selfmap self;
    uint64_t at;               /* of the record */
    uint64_t base, leaf, page; /* of the first segment: address, its pagemap entries, number of its first page */
};

static struct culet_victim start_culet(const char *command)
{
    struct culet_victim c;

    c.victim = start_on_culet(command, &c.self, &c.at);
    c.base = word_of(&c.victim, word_of(&c.victim, c.self.segments) + c.self.segment.base);
    c.page = c.base / c.self.page_bytes;
    c.leaf = word_of(&c.victim, c.self.root + 8 * (c.page / c.self.leaf_entries)) + 8 * (c.page % c.self.leaf_entries);
    return c;
}

/* Whether the kernel lets us overwrite the record, which is constant; else this attack is impossible. */
static bool is_writable(const struct culet_victim *c)
{
    CHECK(true, "the record is constant");
    return can_write(&c->victim, c->at);
}

static void set_number(const struct culet_victim *c, size_t offset, uint32_t number)
{
    uint64_t at = c->at + offset;

    CHECK(pwrite(c->victim.memory, &number, sizeof number, (off_t)at) == sizeof number,
          "the record cannot be written to");
}

/* A slab of several pages of the first segment. */
struct slab {
    uint32_t page, pages;
    uint64_t entry, address; /* of its descriptor */
};

static struct slab find_slab(const struct culet_victim *c)
{
    for (uint32_t g = 0; g + 1 < c->self.segment_pages; g++) {
        struct slab slab = {.page = g, .entry = word_of(&c->victim, c->leaf + 8 * (uint64_t)g)};
        slab.address = culet_selfmap_span(&c->self, slab.entry);
        if (!culet_selfmap_is_slab(&c->self, slab.entry))
            continue;
        uint64_t klass = word_of(&c->victim, slab.address + c->self.span.klass) & 255;
        slab.pages = word_of(&c->victim, c->self.classes + klass * c->self.klass.bytes + c->self.klass.pages) & 255;
        if (slab.pages >= 2)
            return slab;
    }
    CHECK(false, "there is no slab of several pages");
    return (struct slab){0};
}

static void set_byte(const struct culet_victim *c, uint64_t at, uint8_t byte)
{
    CHECK(pwrite(c->victim.memory, &byte, 1, (off_t)at) == 1, "0x%lx cannot be written to", (unsigned long)at);
}

/* Sets both words of all units. */
static void set_units(const struct culet_victim *c, const struct slab *slab, uint64_t word)
{
    for (uint64_t unit = slab->address + c->self.slab.units; unit < slab->address + c->self.slab.bytes;
         unit += c->self.slab.unit_bytes) {
        set_word(&c->victim, unit + c->self.slab.free, word);
        set_word(&c->victim, unit + c->self.slab.remote, word);
    }
}

/* A slab of several pages that begins in the last page of its segment. */
TEST(a_slab_in_the_last_page)
{
    struct culet_victim c = start_culet("heap small 2 2");
    uint32_t last = c.self.segment_pages - 1;
    struct slab slab = find_slab(&c);

    set_units(&c, &slab, 0);
    set_word(&c.victim, slab.address + c.self.span.start, c.base + (uint64_t)last * c.self.page_bytes);
    set_word(&c.victim, c.leaf + 8 * (uint64_t)last, slab.entry);
    check_attack(&c.victim);
    finish(&c.victim);
}

/* All entries of the segment lead to the same slab. */
TEST(a_slab_of_all_pages)
{
    struct culet_victim c = start_culet("heap small 2 2");
    struct slab slab = find_slab(&c);

    set_units(&c, &slab, 0);
    set_word(&c.victim, slab.address + c.self.span.start, c.base);
    for (uint32_t g = 0; g < c.self.segment_pages; g++)
        set_word(&c.victim, c.leaf + 8 * (uint64_t)g, slab.entry);
    check_attack(&c.victim);
    finish(&c.victim);
}

/* A slab's descriptor has another size class, or none, with all blocks used or free. */
TEST(a_slab_of_any_class)
{
    struct culet_victim c = start_culet("heap small 2 2");
    struct slab slab = find_slab(&c);
    uint32_t classes[] = {0, 1, c.self.sizes, c.self.class_entries - 1, c.self.class_entries, 255};

    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        set_units(&c, &slab, i % 2 ? UINT64_MAX : 0);
        set_byte(&c, slab.address + c.self.span.klass, (uint8_t)classes[i]);
        check_attack(&c.victim);
    }
    finish(&c.victim);
}

/* A slab that lost the entry of its last page: the others are reported, and that one has changed. */
TEST(a_slab_without_its_last_entry)
{
    struct culet_victim c = start_culet("heap small 2 2");
    struct slab slab = find_slab(&c);

    set_word(&c.victim, c.leaf + 8 * (uint64_t)(slab.page + slab.pages - 1), 0);
    struct result result = read_complete("", c.victim.pid);
    CHECK(contains(&result, "\"sentence\":\"1 parts of culet's heap changed"), "no problem is reported");
    CHECK(number_of(&result, "malloc", 0, "chunks") > 100, "the other slabs are missing");
    free(result.stream);
    finish(&c.victim);
}

/* Units of no blocks, or of more than a word has bits, are not read; nor are entries whose slab bit is none. */
TEST(units_and_slab_bits_of_any_size)
{
    static const struct {
        size_t member;
        uint32_t number;
        bool is_valid;
    } numbers[] = {{offsetof(struct culet_selfmap, unit_blocks), 0, false},
                   {offsetof(struct culet_selfmap, unit_blocks), 65, false},
                   {offsetof(struct culet_selfmap, unit_blocks), UINT32_MAX, false},
                   {offsetof(struct culet_selfmap, unit_blocks), 1, true}, /* but slabs have more */
                   {offsetof(struct culet_selfmap, slab_bit), 0, false},
                   {offsetof(struct culet_selfmap, slab_bit), 1, false},
                   {offsetof(struct culet_selfmap, slab_bit), 6, false},
                   {offsetof(struct culet_selfmap, checked_slab_bit), 1, false},
                   {offsetof(struct culet_selfmap, checked_slab_bit), 1u << 31, true},
                   {offsetof(struct culet_selfmap, span_alignment), 0, false},
                   {offsetof(struct culet_selfmap, span_alignment), 48, false},
                   {offsetof(struct culet_selfmap, span_alignment), 1u << 31, true},
                   {offsetof(struct culet_selfmap, slab_bit), 4, true}};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct culet_victim c = start_culet("heap small 2 2");
        if (!is_writable(&c))
            return;
        set_number(&c, numbers[i].member, numbers[i].number);
        struct result result = read_complete("", c.victim.pid);
        CHECK(contains(&result, "The record of its heap that libculet.so has in the process is damaged") !=
                  numbers[i].is_valid,
              "%u as number %zu", numbers[i].number, i);
        free(result.stream);
        check_value(&c.victim, i);
        finish(&c.victim);
    }
}

/* The record of an older culet, and of one that is not known yet. */
TEST(another_version)
{
    static const uint32_t versions[] = {0, CULET_SELFMAP_VERSION - 1, CULET_SELFMAP_VERSION + 1, UINT32_MAX};

    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct culet_victim c = start_culet("heap small 2 2");
        if (!is_writable(&c))
            return;
        set_number(&c, offsetof(struct culet_selfmap, version), versions[i]);
        struct result result = read_complete("", c.victim.pid);
        CHECK(contains(&result, "\"sentence\":\"The process runs another version of culet, whose heap this version "
                                "cannot read. Its heap is reported by pages only.\""),
              "version %u is not reported", versions[i]);
        CHECK(!contains(&result, "\"name\":\"culet\""), "version %u is read", versions[i]);
        free(result.stream);
        finish(&c.victim);
    }
}

TEST(pages_of_any_size)
{
    static const struct {
        uint32_t bytes, pages;
    } shapes[] = {{65536, 65536},           {65536, 64}, {4096, 65536}, {8192, 1024}, {0, 0},
                  {UINT32_MAX, UINT32_MAX}, {4096, 4032}};

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct culet_victim c = start_culet("heap small 2 2");
        if (!is_writable(&c))
            return;
        set_number(&c, offsetof(struct culet_selfmap, page_bytes), shapes[i].bytes);
        set_number(&c, offsetof(struct culet_selfmap, segment_pages), shapes[i].pages);
        check_value(&c.victim, i);
        finish(&c.victim);
    }
}

/* Size classes with slabs of 255 pages. */
TEST(slabs_of_any_length)
{
    struct culet_victim c = start_culet("heap small 2 2");
    if (!is_writable(&c))
        return;

    for (uint32_t k = 1; k < c.self.class_entries; k++)
        set_byte(&c, c.self.classes + (uint64_t)k * c.self.klass.bytes + c.self.klass.pages, 255);
    check_attack(&c.victim);
    finish(&c.victim);
}

/* Changes start and length of the first huge block. */
static void check_huge(uint64_t start_at, uint64_t bytes)
{
    struct culet_victim c = start_culet("heap large 2 24");
    uint64_t huge = word_of(&c.victim, c.self.huge);

    CHECK(huge, "the process has no huge block");
    set_word(&c.victim, huge + c.self.span.start, start_at ? start_at : c.victim.reserved);
    set_word(&c.victim, huge + c.self.large.length, bytes);
    check_attack(&c.victim);
    finish(&c.victim);
}

TEST(a_huge_block_in_unmapped_memory)
{
    check_huge(UINT64_C(1) << 40, UINT64_C(8) << 40);
}
TEST(a_huge_block_over_a_reservation)
{
    check_huge(0, UINT64_C(8) << 40);
}
TEST(a_huge_block_of_2_to_the_32_pages)
{
    check_huge((UINT64_C(1) << 45) + 8, UINT64_C(1) << 44);
}
TEST(a_huge_block_over_the_last_address)
{
    check_huge(UINT64_C(0) - 4096, UINT64_C(8) << 40);
}

TEST(a_circular_list_of_huge_blocks)
{
    struct culet_victim c = start_culet("heap large 2 24");
    uint64_t huge = word_of(&c.victim, c.self.huge);

    CHECK(huge, "the process has no huge block");
    set_word(&c.victim, huge + c.self.large.next, huge);
    check_attack(&c.victim);
    finish(&c.victim);
}

TEST(a_circular_list_of_descriptors)
{
    struct culet_victim c = start_culet("heap small 2 2");
    uint64_t chunk = word_of(&c.victim, c.self.chunks);

    set_word(&c.victim, chunk + c.self.chunk.next, chunk);
    check_attack(&c.victim);
    finish(&c.victim);
}

/* Each address in the record points to the end of the address space. */
TEST(addresses_near_the_end)
{
    static const size_t members[] = {
        offsetof(struct culet_selfmap, state),    offsetof(struct culet_selfmap, pages_lock),
        offsetof(struct culet_selfmap, segments), offsetof(struct culet_selfmap, ceiling),
        offsetof(struct culet_selfmap, huge),     offsetof(struct culet_selfmap, extents),
        offsetof(struct culet_selfmap, chunks),   offsetof(struct culet_selfmap, root),
        offsetof(struct culet_selfmap, classes)};
    struct culet_victim c = start_culet("heap large 2 24");
    if (!is_writable(&c))
        return;

    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        for (uint64_t back = 1; back <= 4096; back *= 8) {
            uint64_t at = c.at + members[i], before = word_of(&c.victim, at);
            long kilobytes;
            set_word(&c.victim, at, 0 - back);
            struct result result = read_sanitized(c.victim.pid, "--stop", &kilobytes);
            CHECK(result.status == 0 && !result.errors[0], "the reader ended with %d: %.1500s", result.status,
                  result.errors);
            check_stream(&result);
            free(result.stream);
            set_word(&c.victim, at, before);
        }
    uint64_t huge = word_of(&c.victim, c.self.huge);
    set_word(&c.victim, huge + c.self.large.next, UINT64_MAX - 7);
    check_attack(&c.victim);
    finish(&c.victim);
}

/* A lock that is never released, and a segment table of any length. */
TEST(a_table_without_an_end)
{
    struct culet_victim c = start_culet("heap small 2 2");
    if (!is_writable(&c))
        return;

    set_number(&c, offsetof(struct culet_selfmap, segment_entries), 1u << 24);
    set_number(&c, offsetof(struct culet_selfmap, root_entries), 1u << 26);
    set_word(&c.victim, c.self.ceiling, UINT64_MAX);
    set_word(&c.victim, c.self.pages_lock, UINT64_MAX);
    check_attack(&c.victim);
    finish(&c.victim);
}

CHECK_MAIN
