#include "comparison/comparison.h"

#include <string.h>
#include <sys/param.h>

#include "comparison/malloc_blocks.h"
#include "comparison/ruby_pages.h"

/* compared at a time; a multiple of all page sizes */
#define WINDOW_BYTES 262144
#define MAX_PAGE 65536
/* larger than any Ruby's heap pages (64 KiB) */
#define MAX_HEAP_PAGE (1 << 20)
/* of the relative's heap pages, to find the age bits */
#define AGE_SAMPLE_PAGES 100

/* A region of malloc, as packed by Culet::Cow::Comparison. */
struct region {
    uint64_t first, past, metadata; /* metadata: 1 if the region is the allocator's own */
};

struct comparison {
    struct comparison_process here, there;
    struct comparison_owners owners;
    struct comparison_malloc malloc;
    struct comparison_ruby ruby;
    struct comparison_writes writes;
    const struct comparison_extent *unshared;
    const struct region *regions;
    size_t unshared_count, region_count;
    size_t next_page, next_region; /* the first that ends after the current page */
    uint64_t page_bytes;           /* kernel pages */
    int blocks_known;              /* whether the blocks of both processes are known */
    char *bytes;                   /* two windows */
    uint64_t *words, *rest;        /* of words on one page */
};

static void process_free(struct comparison_process *process)
{
    culet_comparison_blocks_free(&process->blocks);
    xfree((void *)process->memory.present);
    xfree(process->memory.window);
    xfree((void *)process->pages);
}

static void comparison_free(void *pointer)
{
    struct comparison *comparison = pointer;

    process_free(&comparison->here);
    process_free(&comparison->there);
    culet_comparison_owners_free(&comparison->owners);
    culet_comparison_writes_free(&comparison->writes);
    xfree((void *)comparison->unshared);
    xfree((void *)comparison->regions);
    xfree(comparison->bytes);
    xfree(comparison->words);
    xfree(comparison->rest);
    xfree(comparison->ruby.here);
    xfree(comparison->ruby.there);
    xfree(comparison);
}

static const rb_data_type_t comparison_type = {.wrap_struct_name = "culet/comparison",
                                               .function = {.dfree = comparison_free}};

/* ---- arguments ---- */

/* Copies a String of packed records and counts them. */
static void *records(VALUE string, size_t bytes, size_t *count)
{
    void *copy;

    StringValue(string);
    if (RSTRING_LEN(string) % (long)bytes != 0)
        rb_raise(rb_eArgError, "a record is truncated");
    copy = xmalloc((size_t)RSTRING_LEN(string) + 1);
    memcpy(copy, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
    *count = (size_t)RSTRING_LEN(string) / bytes;
    return copy;
}

static VALUE fetch(VALUE hash, const char *name)
{
    return rb_hash_fetch(hash, ID2SYM(rb_intern(name)));
}

static void check_order(uint64_t before, uint64_t first, uint64_t past)
{
    if (first < before || past < first)
        rb_raise(rb_eArgError, "ranges of the process overlap");
}

static void take_blocks(struct comparison_blocks *blocks, VALUE list)
{
    uint64_t count = 0, before = 0;

    Check_Type(list, T_ARRAY);
    for (long at = 0; at < RARRAY_LEN(list); at++) {
        VALUE payload = rb_ary_entry(rb_ary_entry(list, at), 2);
        StringValue(payload);
        count += culet_comparison_numbers((const unsigned char *)RSTRING_PTR(payload), (size_t)RSTRING_LEN(payload));
    }
    if (!culet_comparison_blocks_reserve(blocks, count))
        rb_raise(rb_eArgError, "too many blocks to compare");
    for (long at = 0; at < RARRAY_LEN(list); at++) {
        VALUE region = rb_ary_entry(list, at), payload = rb_ary_entry(region, 2);
        uint64_t first = NUM2ULL(rb_ary_entry(region, 0)), past = NUM2ULL(rb_ary_entry(region, 1));
        check_order(before, first, past);
        before = past;
        if (!culet_comparison_blocks_add(blocks, first, past, (const unsigned char *)RSTRING_PTR(payload),
                                         (size_t)RSTRING_LEN(payload)))
            rb_raise(rb_eArgError, "the blocks of a region exceed it");
        RB_GC_GUARD(payload);
    }
}

/* Checks that pages do not overlap and contain their slots. */
static void check_pages(const struct comparison_process *process)
{
    uint64_t before = 0;

    if (process->page_count == 0)
        return;
    if (process->page_bytes == 0 || process->page_bytes > MAX_HEAP_PAGE || process->page_bytes % COMPARISON_WORD != 0)
        rb_raise(rb_eArgError, "invalid size of Ruby's heap pages");
    for (size_t index = 0; index < process->page_count; index++) {
        const struct comparison_heap_page *page = &process->pages[index];
        check_order(before, page->address, page->address + process->page_bytes);
        before = page->address + process->page_bytes;
        if (page->slot_bytes < 2 * COMPARISON_WORD || page->slot_bytes % COMPARISON_WORD != 0 ||
            page->first_slot % COMPARISON_WORD != 0 || page->first_slot > process->page_bytes ||
            page->slots > (process->page_bytes - page->first_slot) / page->slot_bytes)
            rb_raise(rb_eArgError, "the slots of a heap page exceed it");
    }
}

static void take_process(struct comparison_process *process, VALUE hash)
{
    uint64_t before = 0;

    Check_Type(hash, T_HASH);
    process->memory.fd = NUM2INT(fetch(hash, "memory"));
    process->memory.present =
        records(fetch(hash, "present"), sizeof(struct comparison_extent), &process->memory.extents);
    for (size_t index = 0; index < process->memory.extents; index++) {
        check_order(before, process->memory.present[index].first, process->memory.present[index].past);
        before = process->memory.present[index].past;
    }
    process->blocks.header_bytes = NUM2ULL(fetch(hash, "header_bytes"));
    take_blocks(&process->blocks, fetch(hash, "blocks"));
    process->page_bytes = NUM2ULL(fetch(hash, "ruby_page_bytes"));
    process->pages = records(fetch(hash, "ruby_pages"), sizeof(struct comparison_heap_page), &process->page_count);
    check_pages(process);
}

static void take_extents(struct comparison *comparison, VALUE unshared, VALUE regions)
{
    uint64_t before = 0;

    comparison->unshared = records(unshared, sizeof(struct comparison_extent), &comparison->unshared_count);
    comparison->regions = records(regions, sizeof(struct region), &comparison->region_count);
    for (size_t index = 0; index < comparison->unshared_count; index++) {
        const struct comparison_extent *extent = &comparison->unshared[index];
        check_order(before, extent->first, extent->past);
        if (extent->first % comparison->page_bytes != 0 || extent->past % comparison->page_bytes != 0)
            rb_raise(rb_eArgError, "pages are not aligned");
        before = extent->past;
    }
    before = 0;
    for (size_t index = 0; index < comparison->region_count; index++) {
        check_order(before, comparison->regions[index].first, comparison->regions[index].past);
        before = comparison->regions[index].past;
    }
}

/* ---- pages ---- */

/* Lists the addresses of differing words on a page. Returns how many. */
static size_t differing(const struct comparison *comparison, uint64_t from, const char *here, const char *there)
{
    size_t count = 0;

    if (memcmp(here, there, comparison->page_bytes) == 0)
        return 0;
    for (uint64_t at = 0; at < comparison->page_bytes; at += COMPARISON_WORD)
        if (memcmp(here + at, there + at, COMPARISON_WORD) != 0)
            comparison->words[count++] = from + at;
    return count;
}

/* Reads a heap page of both processes, unless it is the current one. Returns whether it could be read. */
static int load_heap_page(struct comparison *comparison, const struct comparison_heap_page *page)
{
    struct comparison_ruby *ruby = &comparison->ruby;
    uint64_t past = page->address + comparison->here.page_bytes;

    if (ruby->page == page)
        return ruby->readable;
    ruby->page = page;
    ruby->readable = culet_comparison_read(&comparison->here.memory, page->address, past, (char *)ruby->here) &&
                     culet_comparison_read(&comparison->there.memory, page->address, past, (char *)ruby->there);
    return ruby->readable;
}

/* Categories of the words in malloc's regions on a page; counts the blocks there. */
static unsigned malloc_pages(struct comparison *comparison, uint64_t from, uint64_t to, const uint64_t *words,
                             size_t count)
{
    unsigned mask = 0;
    size_t at = 0, elsewhere = 0;

    while (comparison->next_region < comparison->region_count &&
           comparison->regions[comparison->next_region].past <= from)
        comparison->next_region++;
    for (size_t index = comparison->next_region;
         index < comparison->region_count && comparison->regions[index].first < to; index++) {
        const struct region *region = &comparison->regions[index];
        uint64_t first = MAX(region->first, from), past = MIN(region->past, to);
        size_t begin;

        for (; at < count && words[at] < first; at++)
            elsewhere++;
        for (begin = at; at < count && words[at] < past;)
            at++;
        if (region->metadata || !comparison->blocks_known) {
            if (at > begin)
                mask |= region->metadata ? WRITES_METADATA : WRITES_UNKNOWN;
            continue;
        }
        culet_comparison_count_blocks(&comparison->malloc, first, past, &comparison->writes);
        mask |= culet_comparison_malloc_mask(&comparison->malloc, words + begin, at - begin);
    }
    return at < count || elsewhere > 0 ? mask | WRITES_ELSEWHERE : mask;
}

static void compare_page(struct comparison *comparison, uint64_t from, const char *here, const char *there)
{
    const struct comparison_process *process = &comparison->here;
    uint64_t to = from + comparison->page_bytes, covered = 0;
    size_t count = differing(comparison, from, here, there), at = 0, rest = 0;
    unsigned mask = 0, unchanged = WRITES_SAME;

    while (comparison->next_page < process->page_count &&
           process->pages[comparison->next_page].address + process->page_bytes <= from)
        comparison->next_page++;
    for (size_t index = comparison->next_page; index < process->page_count && process->pages[index].address < to;
         index++) {
        const struct comparison_heap_page *page = &process->pages[index];
        uint64_t first = MAX(page->address, from), past = MIN(page->address + process->page_bytes, to);
        size_t begin;

        covered += past - first;
        while (at < count && comparison->words[at] < first)
            comparison->rest[rest++] = comparison->words[at++];
        for (begin = at; at < count && comparison->words[at] < past;)
            at++;
        if (!load_heap_page(comparison, page))
            continue;
        culet_comparison_count_objects(&comparison->ruby, first, past, &comparison->writes);
        mask |= culet_comparison_ruby_mask(&comparison->ruby, comparison->words + begin, at - begin, from,
                                           &comparison->writes);
        if (count == 0 && culet_comparison_ruby_ages(&comparison->ruby, first, past))
            unchanged = WRITES_AGED;
    }
    while (at < count)
        comparison->rest[rest++] = comparison->words[at++];
    if (covered < comparison->page_bytes)
        mask |= malloc_pages(comparison, from, to, comparison->rest, rest);
    comparison->writes.masks[mask == 0 ? unchanged : mask] += comparison->page_bytes;
}

/* A window that is not entirely in memory is compared page by page. */
static void compare_window(struct comparison *comparison, uint64_t first, uint64_t past)
{
    char *here = comparison->bytes, *there = comparison->bytes + WINDOW_BYTES;

    if (culet_comparison_present(&comparison->there.memory, first, past) &&
        culet_comparison_read(&comparison->here.memory, first, past, here) &&
        culet_comparison_read(&comparison->there.memory, first, past, there)) {
        for (uint64_t from = first; from < past; from += comparison->page_bytes)
            compare_page(comparison, from, here + (from - first), there + (from - first));
    } else if (past - first <= comparison->page_bytes) {
        comparison->writes.masks[WRITES_UNKNOWN] += past - first;
    } else {
        for (uint64_t from = first; from < past; from += comparison->page_bytes)
            compare_window(comparison, from, from + comparison->page_bytes);
    }
}

/* The bits of an object's first word that mark it as old, judged by the relative's objects. */
static uint64_t seen_old_mask(struct comparison *comparison)
{
    const struct comparison_process *process = &comparison->there;
    uint64_t live = 0, upper = 0;

    for (size_t index = 0; index < process->page_count && index < AGE_SAMPLE_PAGES; index++) {
        const struct comparison_heap_page *page = &process->pages[index];
        char *bytes = (char *)comparison->ruby.there;
        if (!culet_comparison_read(&process->memory, page->address, page->address + process->page_bytes, bytes))
            continue;
        for (uint64_t slot = 0; slot < page->slots; slot++) {
            uint64_t flags;
            memcpy(&flags, bytes + page->first_slot + slot * page->slot_bytes, sizeof(flags));
            live += ruby_slot_is_live(flags);
            upper += ruby_slot_is_live(flags) && ruby_slot_has_upper_age(flags);
        }
    }
    return ruby_slot_old_mask(live, upper);
}

static void compare(struct comparison *comparison, uint64_t old_bits, int classes)
{
    comparison->blocks_known = comparison->here.blocks.count > 0 && comparison->there.blocks.run_count > 0;
    culet_comparison_find_owners(&comparison->owners, &comparison->here, classes);
    comparison->malloc = (struct comparison_malloc){
        .here = &comparison->here, .there = &comparison->there, .owners = &comparison->owners};
    comparison->ruby.old_mask = old_bits != 0 ? old_bits : seen_old_mask(comparison);
    for (size_t index = 0; index < comparison->unshared_count; index++) {
        const struct comparison_extent *extent = &comparison->unshared[index];
        for (uint64_t first = extent->first; first < extent->past; first += WINDOW_BYTES) {
            compare_window(comparison, first, MIN(first + WINDOW_BYTES, extent->past));
            rb_thread_check_ints();
        }
    }
}

/* ---- result ---- */

static int add_class(st_data_t address, st_data_t sums, st_data_t hash)
{
    VALUE list = rb_ary_new();

    for (int kind = 0; kind < KINDS; kind++)
        rb_ary_push(list, ULL2NUM(((uint64_t *)sums)[kind]));
    rb_hash_aset((VALUE)hash, ULL2NUM((uint64_t)address), list);
    return ST_CONTINUE;
}

static VALUE numbers(const uint64_t *values, size_t count)
{
    VALUE list = rb_ary_new();

    for (size_t index = 0; index < count; index++)
        rb_ary_push(list, ULL2NUM(values[index]));
    return list;
}

static VALUE result(const struct comparison_writes *writes)
{
    VALUE masks = rb_hash_new(), holdings = rb_hash_new(), classes = rb_hash_new();

    for (size_t mask = 0; mask < WRITES_MASKS; mask++)
        if (writes->masks[mask] > 0)
            rb_hash_aset(masks, SIZET2NUM(mask), ULL2NUM(writes->masks[mask]));
    for (size_t owner = 0; owner < OWNERS; owner++) {
        uint64_t sum = 0;
        for (int kind = 0; kind < KINDS; kind++)
            sum += writes->holdings[owner][kind];
        if (sum > 0)
            rb_hash_aset(holdings, SIZET2NUM(owner), numbers(writes->holdings[owner], KINDS));
    }
    if (writes->classes != NULL)
        st_foreach(writes->classes, add_class, (st_data_t)classes);
    return rb_ary_new_from_args(4, masks, numbers(writes->flags, FLAGS), holdings, classes);
}

/* Culet::PageComparison.call(here, there, unshared, regions, page_bytes, old_bits, classes): what was written to pages.
 *
 * here, there: Hashes of the process and its relative, all lists in address order:
 *   memory: descriptor of /proc/PID/mem
 *   present: String of address pairs [first, past) of the pages in memory
 *   header_bytes: from a block's start to the address that the program has
 *   blocks: Array of [first, past, C record] of malloc's regions
 *   ruby_page_bytes, ruby_pages: String of address, slot bytes, bytes before the first slot, slots
 * unshared: String of address pairs: the pages to compare
 * regions: String of first, past, 1 for metadata else 0: malloc's regions in the process
 * page_bytes: of the kernel's pages
 * old_bits: of an object's first word; 0: not known
 * classes: whether to count bytes by class
 *
 * Returns [{mask => bytes}, objects by flag, {owner => bytes by kind}, {address of a class => bytes by kind}], in the
 * orders of comparison/writes.h. Raises ArgumentError if the arguments contradict each other. */
static VALUE call(VALUE self, VALUE here, VALUE there, VALUE unshared, VALUE regions, VALUE page_bytes, VALUE old_bits,
                  VALUE classes)
{
    struct comparison *comparison;
    VALUE object = TypedData_Make_Struct(0, struct comparison, &comparison_type, comparison);
    VALUE result_array;
    size_t ruby_bytes;

    comparison->page_bytes = NUM2ULL(page_bytes);
    if (comparison->page_bytes < COMPARISON_WORD || comparison->page_bytes > MAX_PAGE ||
        WINDOW_BYTES % comparison->page_bytes != 0)
        rb_raise(rb_eArgError, "invalid page size");
    take_process(&comparison->here, here);
    take_process(&comparison->there, there);
    take_extents(comparison, unshared, regions);
    comparison->bytes = xmalloc2(2, WINDOW_BYTES);
    comparison->words = xmalloc(comparison->page_bytes);
    comparison->rest = xmalloc(comparison->page_bytes);
    ruby_bytes = (size_t)MAX(comparison->here.page_bytes, comparison->there.page_bytes);
    if (ruby_bytes > MAX_HEAP_PAGE)
        rb_raise(rb_eArgError, "invalid size of Ruby's heap pages");
    comparison->ruby.here = xmalloc(ruby_bytes + 1);
    comparison->ruby.there = xmalloc(ruby_bytes + 1);
    if (RTEST(classes))
        comparison->writes.classes = st_init_numtable();
    compare(comparison, NUM2ULL(old_bits), RTEST(classes));
    result_array = result(&comparison->writes);
    /* Tens of megabytes, freed for the next comparison. */
    DATA_PTR(object) = NULL;
    comparison_free(comparison);
    RB_GC_GUARD(object);
    return result_array;
}

void culet_init_comparison(VALUE culet)
{
    rb_define_singleton_method(rb_define_module_under(culet, "PageComparison"), "call", call, 7);
}
