/* Fuzzer: overwrites a few words of a sound heap in a process and reads it with the reader under the sanitizers. The
 * reader must end with a complete stream or one sentence, within a memory limit, and leave the process as it was.
 *
 * SCOPE_FUZZ_SEED=N selects other mutations; CULET_TEST_ALL makes 480 times as many. */
#define _GNU_SOURCE
#define CHECK_SECONDS 7200 /* thousands of readings on a busy machine */
#include "victim.h"

#include "reader/layouts/musl_heap.h"

#define MOST_AT_ONCE 4

static const char *const modes[] = {NULL, NULL, NULL, NULL, "--stop", "--live"};

/* ---- what is overwritten ---- */

struct change {
    uint64_t address, before, after;
    const char *group;
};

static uint64_t pick(struct victim *victim, uint64_t below)
{
    return check_random(&victim->state) % below;
}

static uint64_t any_address(struct victim *victim)
{
    const struct group *group = &victim->image.groups[pick(victim, victim->image.count)];

    return group->words.all[pick(victim, group->words.count)];
}

/* Values that attackers and accidents write. */
static uint64_t whole_value(struct victim *victim, uint64_t address, uint64_t before)
{
    uint64_t random = check_random(&victim->state);

    switch (pick(victim, 18)) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return before ^ UINT64_C(1) << random % 64;
    case 3:
        return before + 16 * (random % 64) - 512;
    case 4:
        return UINT64_C(1) << random % 64;
    case 5:
        return (UINT64_C(1) << random % 64) - 1;
    case 6:
        return random;
    case 7:
        return UINT64_C(0x4141414141414141);
    case 8:
        return address;
    case 9:
        return any_address(victim);
    case 10:
        return any_address(victim) + 8 * (random % 64) - 256;
    case 11:
        return word_of(victim, any_address(victim));
    case 12:
        return 0 - random % 8192;
    case 13:
        return (UINT64_C(1) << 47) - random % 65536;
    case 14:
        return before ^ random % 8;
    case 15:
        return before + ((random % 2048) << 12);
    case 16:
        return (before & 15) | (random % (UINT64_C(1) << random % 48) & ~UINT64_C(15));
    default:
        return (before & ~UINT64_C(0xffff)) | (random & 0xffff);
    }
}

/* Changes the whole word, or a half, quarter or byte of it. */
static uint64_t value(struct victim *victim, uint64_t address, uint64_t before)
{
    static const unsigned bits[] = {64, 64, 64, 32, 16, 8};
    unsigned width = bits[pick(victim, sizeof bits / sizeof *bits)], shift = (unsigned)pick(victim, 64 / width) * width;
    uint64_t mask = (width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1) << shift;

    return (before & ~mask) | (whole_value(victim, address, before >> shift) << shift & mask);
}

static struct change change_one(struct victim *victim)
{
    const struct group *group = &victim->image.groups[pick(victim, victim->image.count)];
    struct change change = {.address = group->words.all[pick(victim, group->words.count)], .group = group->name};

    change.before = word_of(victim, change.address);
    change.after = value(victim, change.address, change.before);
    set_word(victim, change.address, change.after);
    return change;
}

static void describe(const struct change *changes, size_t count, char *text, size_t room)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        int length = snprintf(text + at, room - at, " %s 0x%lx: 0x%lx to 0x%lx;", changes[i].group,
                              (unsigned long)changes[i].address, (unsigned long)changes[i].before,
                              (unsigned long)changes[i].after);
        at += length > 0 && (size_t)length < room - at ? (size_t)length : 0;
    }
}

static void mutate(struct victim *victim, unsigned number)
{
    struct change changes[MOST_AT_ONCE];
    size_t count = 1 + pick(victim, MOST_AT_ONCE);
    const char *mode = modes[pick(victim, sizeof modes / sizeof *modes)];
    char text[1024] = "";
    long kilobytes;

    for (size_t i = 0; i < count; i++)
        changes[i] = change_one(victim);
    describe(changes, count, text, sizeof text);
    struct result result = read_sanitized(victim->pid, mode, &kilobytes);
    for (size_t i = count; i-- > 0;)
        set_word(victim, changes[i].address, changes[i].before);
    CHECK(result.status == 0 || (result.status == 1 && strncmp(result.errors, "culet-scope: ", 13) == 0),
          "mutation %u (%s):%s the reader ended with %d: %.1500s", number, mode ? mode : "sliced", text, result.status,
          result.errors);
    CHECK(kilobytes < MOST_KILOBYTES, "mutation %u (%s):%s the reader took %ld KB", number, mode ? mode : "sliced",
          text, kilobytes);
    if (result.status == 0) {
        CHECK(!result.errors[0], "mutation %u:%s the reader said %s", number, text, result.errors);
        check_stream(&result);
    }
    free(result.stream);
}

static void fuzz(struct victim *victim, unsigned count)
{
    long kilobytes;

    CHECK(victim->image.count, "no words to overwrite were found");
    for (unsigned i = 0; i < check_rounds(count / 16, count * 30); i++)
        mutate(victim, i);
    /* The process is unchanged and can be read as before. */
    struct result result = read_sanitized(victim->pid, NULL, &kilobytes);
    check_stream(&result);
    CHECK(!contains(&result, "\"broken\":true"), "an arena is broken");
    finish(victim);
}

static void fuzz_heap(const char *command, unsigned count)
{
    struct victim victim = start_victim(command);

    fuzz(&victim, count);
}

TEST(glibc)
{
    fuzz_heap("heap mixed 3 1", 700);
}
TEST(glibc_with_gaps)
{
    fuzz_heap("heap gaps 2 1", 300);
}
TEST(glibc_without_brk)
{
    fuzz_heap("heap nobrk 2 1", 300);
}
TEST(glibc_with_large_blocks)
{
    fuzz_heap("heap large 2 12", 200);
}

/* ---- culet's ---- */

/* The words of a table that are not zero. */
static void add_entries(struct victim *victim, const char *group, uint64_t table, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (word_of(victim, table + 8 * i))
            add_word(&victim->image, group, table + 8 * i);
}

/* The descriptors and pagemap entries of the first segments, and the descriptors that these lead to. */
static void add_segments(struct victim *victim, const struct culet_selfmap *self)
{
    for (unsigned i = 0; i < 4; i++) {
        uint64_t segment = word_of(victim, self->segments + 8 * i),
                 base = word_of(victim, segment + self->segment.base);
        uint64_t page = base / self->page_bytes, leaf = word_of(victim, self->root + 8 * (page / self->leaf_entries));
        if (!segment)
            continue;
        add_words(&victim->image, "segments", segment, self->segment.bytes);
        add_word(&victim->image, "segments", self->segments + 8 * i);
        add_word(&victim->image, "leaves", self->root + 8 * (page / self->leaf_entries));
        for (uint64_t g = 0; leaf && g < self->segment_pages; g++) {
            uint64_t at = leaf + 8 * (page % self->leaf_entries + g), entry = word_of(victim, at);
            uint64_t span = culet_selfmap_span(self, entry);
            add_word(&victim->image, "entries", at);
            if (span && g % 3 == 0)
                add_words(&victim->image, "descriptors", span,
                          culet_selfmap_is_slab(self, entry) ? self->slab.bytes : self->large.bytes);
        }
    }
}

/* The library's constants: its record, and the shapes of slabs. */
static void find_record(struct victim *victim, const struct culet_selfmap *self, uint64_t at)
{
    add_words(&victim->image, "the record's addresses", at + offsetof(struct culet_selfmap, self),
              offsetof(struct culet_selfmap, page_bytes) - offsetof(struct culet_selfmap, self));
    add_words(&victim->image, "the record's numbers", at + offsetof(struct culet_selfmap, page_bytes),
              sizeof *self - offsetof(struct culet_selfmap, page_bytes));
    add_words(&victim->image, "classes", self->classes, (uint64_t)self->class_entries * self->klass.bytes);
}

static void find_culet(struct victim *victim, const struct culet_selfmap *record, uint64_t at)
{
    struct culet_selfmap self = *record;

    victim->image.count = 0;
    if (can_write(victim, at))
        find_record(victim, &self, at);
    add_words(&victim->image, "counts", self.state, 8);
    add_words(&victim->image, "counts", self.pages_lock, 8);
    add_words(&victim->image, "counts", self.ceiling, 8);
    add_words(&victim->image, "counts", self.extent_count, 8);
    add_words(&victim->image, "counts", self.threads, 8);
    add_words(&victim->image, "extents", self.extents, (uint64_t)self.extent_entries * self.extent.bytes);
    add_word(&victim->image, "lists", self.huge);
    add_word(&victim->image, "lists", self.chunks);
    add_words(&victim->image, "lists", word_of(victim, self.chunks), 64);
    for (uint64_t huge = word_of(victim, self.huge), i = 0; huge && i < 16;
         huge = word_of(victim, huge + self.large.next), i++)
        add_words(&victim->image, "huge blocks", huge, self.large.bytes);
    add_entries(victim, "leaves", self.root, self.root_entries < 65536 ? self.root_entries : 65536);
    add_segments(victim, &self);
}

static void fuzz_culet(const char *command, unsigned count)
{
    struct culet_selfmap self;
    uint64_t at;
    struct victim victim = start_on_culet(command, &self, &at);

    find_culet(&victim, &self, at);
    fuzz(&victim, count);
}

TEST(culet)
{
    fuzz_culet("heap mixed 3 1", 900);
}
TEST(culet_with_huge_blocks)
{
    fuzz_culet("heap large 2 24", 300);
}

/* ---- musl's ---- */

/* The context, and the first areas with their metas and the heads of their groups. */
static void find_musl(struct victim *victim, uint64_t context)
{
    uint64_t area = word_of(victim, context + MUSL_CONTEXT_FIRST_AREA);

    victim->image.count = 0;
    add_words(&victim->image, "context", context, 80);
    add_words(&victim->image, "slots of classes", context + MUSL_CONTEXT_SLOTS, 8 * MUSL_CLASSES);
    for (unsigned i = 0; area && i < 8; i++, area = word_of(victim, area + MUSL_AREA_NEXT)) {
        add_words(&victim->image, "areas", area, MUSL_AREA_METAS);
        for (uint64_t n = 0; n < MUSL_AREA_META_COUNT; n++) {
            uint64_t meta = area + MUSL_AREA_METAS + n * MUSL_META_BYTES,
                     group = word_of(victim, meta + MUSL_META_GROUP);
            if (!group)
                continue;
            add_words(&victim->image, "metas", meta, MUSL_META_BYTES);
            add_words(&victim->image, "groups", group, MUSL_GROUP_HEADER_BYTES);
        }
    }
}

static void fuzz_musl(const char *command, unsigned count)
{
    struct target target = start_frozen(command);
    long kilobytes;

    kill(target.pid, SIGCONT);
    read_line(&target);
    await_state(target.pid, 'T');
    struct victim victim = open_memory(target);
    struct result result = read_sanitized(victim.pid, NULL, &kilobytes);
    check_stream(&result);
    CHECK(contains(&result, "\"name\":\"musl\"") && contains(&result, "\"level\":\"blocks\""),
          "the process does not run on musl");
    find_musl(&victim, number_of(&result, "arena", 0, "address"));
    free(result.stream);
    fuzz(&victim, count);
}

TEST(musl)
{
    fuzz_musl("musl_heap mixed 1", 500);
}
TEST(musl_with_large_blocks)
{
    fuzz_musl("musl_heap large 12", 150);
}

/* ---- Ruby's ---- */

TEST(ruby)
{
    static const char script[] = "A = Array.new(2_000) { |i| [i.to_s * 20, { i => i }] }; Process.kill(:STOP, $$)";
    struct target target = {.pid = fork(), .output = -1};
    long kilobytes;

    if (target.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execlp("ruby", "ruby", "--disable-gems", "-e", script, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 60000 && state_of(target.pid) != 'T' && state_of(target.pid) != 'Z'; i++)
        nap(1000);
    if (state_of(target.pid) == 'Z') {
        CHECK(true, "there is no Ruby here");
        return;
    }
    struct victim victim = open_memory(target);
    struct result result = read_sanitized(victim.pid, NULL, &kilobytes);
    check_stream(&result);
    find_figures(&victim, &result);
    free(result.stream);
    fuzz(&victim, 150);
}

CHECK_MAIN
