#include "ruby/ruby_heap.h"

#define SHORT CULET_RUBY_SHORT

bool culet_ruby_pages_in_malloc(const struct culet_reading *reading)
{
    return reading->page_bytes > SHORT;
}

/* ---- candidates ---- */

/* Whether a word can point to a description: aligned, into writable memory, and not into the page itself. */
static bool can_describe(const struct culet_reading *reading, uint64_t start, uint64_t pointer)
{
    if (pointer % 8 || !pointer || pointer - start < SHORT)
        return false;
    const struct culet_mapping *mapping = culet_maps_at(&reading->maps, pointer);
    return mapping && mapping->perms[1] == 'w' && pointer + CULET_RUBY_DESCRIPTION <= mapping->end;
}

/* Notes the candidates that can be blocks of the transient heap. A page is none, though it can begin like one; the
 * pages from index `page` on may have candidates in them. Both are in address order. */
static void note_transient(struct culet_ruby *ruby, size_t count, size_t page)
{
    const struct culet_ruby_batch *batch = &ruby->batch;

    for (size_t i = 0; i < count; i++) {
        uint64_t start = batch->starts[i];
        while (page < ruby->count && ruby->pages[page].shape.start + ruby->pages[page].shape.bytes <= start)
            page++;
        bool in_page = page < ruby->count && ruby->pages[page].shape.start <= start;
        if (batch->got[i] && !in_page)
            culet_transient_note(&ruby->transient, start, batch->words[i]);
    }
}

static void want(struct culet_ruby_batch *batch, size_t *wanted, size_t candidate, uint64_t pointer)
{
    batch->described[*wanted] = candidate;
    batch->pointers[(*wanted)++] = pointer;
}

/* Checks the descriptions that the first words of `count` candidates point to. */
static void check_batch(struct culet_reading *reading, struct culet_ruby *ruby, size_t count)
{
    struct culet_ruby_batch *batch = &ruby->batch;
    struct culet_ruby_page shape;
    size_t wanted = 0, before = ruby->count;

    culet_memory_copy_batch(&reading->memory, batch->starts, count, sizeof *batch->words, batch->words, batch->got);
    for (size_t i = 0; i < count; i++) {
        uint64_t start = batch->starts[i], first = batch->words[i][0], second = batch->words[i][1];
        if (batch->got[i] && can_describe(reading, start, first))
            want(batch, &wanted, i, first);
        if (batch->got[i] && culet_ruby_page_may_be_free(start, first) && can_describe(reading, start, second))
            want(batch, &wanted, i, second);
    }
    culet_memory_copy_batch(&reading->memory, batch->pointers, wanted, CULET_RUBY_DESCRIPTION, batch->descriptions,
                            batch->got_description);
    for (size_t i = 0; i < wanted; i++) {
        uint64_t start = batch->starts[batch->described[i]], first = batch->words[batch->described[i]][0];
        if (batch->got_description[i] &&
            (batch->pointers[i] == first
                 ? culet_ruby_page_recognize(start, batch->descriptions[i], &shape)
                 : culet_ruby_page_recognize_free(start, first, batch->descriptions[i], &shape)))
            CULET_APPEND(ruby->pages, ruby->count, ruby->room) = (struct culet_ruby_found_page){.shape = shape};
    }
    note_transient(ruby, count, before ? before - 1 : 0);
}

static uint64_t round_up(uint64_t address)
{
    return (address + SHORT - 1) & ~(uint64_t)(SHORT - 1);
}

/* The next address from `at` on where a page can begin: with its first kernel page in memory. */
static uint64_t next_start(struct culet_reading *reading, uint64_t at, uint64_t end)
{
    const unsigned shift = reading->pages.shift;

    return round_up(culet_pages_next(&reading->pages, at >> shift, ((end - 1) >> shift) + 1) << shift);
}

/* Adds the candidates of one mapping to the batch, and checks each full batch. Returns the size of the last one. */
static size_t search_mapping(struct culet_reading *reading, struct culet_ruby *ruby,
                             const struct culet_mapping *mapping, size_t count)
{
    for (uint64_t at = round_up(mapping->start); at + SHORT <= mapping->end; at += SHORT) {
        /* Skips long empty ranges. */
        if (!(culet_pages_at(&reading->pages, at) & CULET_PAGE_PRESENT)) {
            uint64_t next = next_start(reading, at, mapping->end);
            if (next > at) {
                at = next - SHORT;
                continue;
            }
        }
        if (!culet_ruby_pages_in_malloc(reading) && culet_regions_at(&reading->regions, at))
            continue;
        ruby->batch.starts[count++] = at;
        if (count < CULET_MEMORY_BATCH / 2)
            continue;
        check_batch(reading, ruby, count);
        count = 0;
        culet_reading_yield(reading);
    }
    return count;
}

/* ---- the majority ---- */

/* Layouts differ in the word of the description that points back. */
#define LAYOUTS (CULET_RUBY_DESCRIPTION / 8)

static size_t kind_of(const struct culet_ruby_page *page)
{
    return page->layout / 8 % LAYOUTS + (page->bytes == CULET_RUBY_LONG ? LAYOUTS : 0);
}

/* All described pages of a process have one length and one layout: the most frequent. Others only look like pages and
 * are dropped. */
static void keep_majority(struct culet_ruby *ruby)
{
    size_t votes[2 * LAYOUTS] = {0}, best = 0, kept = 0;

    for (size_t i = 0; i < ruby->count; i++)
        if (ruby->pages[i].shape.layout && ++votes[kind_of(&ruby->pages[i].shape)] > votes[best])
            best = kind_of(&ruby->pages[i].shape);
    for (size_t i = 0; i < ruby->count; i++)
        if (!ruby->pages[i].shape.layout || kind_of(&ruby->pages[i].shape) == best)
            ruby->pages[kept++] = ruby->pages[i];
    ruby->count = kept;
    ruby->page_bytes = kept ? ruby->pages[0].shape.bytes : 0;
}

void culet_ruby_find_pages(struct culet_reading *reading, struct culet_ruby *ruby)
{
    size_t count = 0;

    for (size_t i = 0; i < reading->maps.count && !reading->pages.exhausted; i++) {
        const struct culet_mapping *mapping = &reading->maps.all[i];
        if (culet_mapping_is_heap_like(mapping) && mapping->start < UINT64_C(1) << 56)
            count = search_mapping(reading, ruby, mapping, count);
    }
    check_batch(reading, ruby, count);
    keep_majority(ruby);
}
