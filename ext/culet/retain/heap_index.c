/* The address space is divided into granules of 16 KiB, the smallest size of a page of Ruby's heap; a hash table leads
 * from a granule to its run. Neighbouring granules share a cache line, because objects refer to their neighbours.
 * Collectors that pass one slot at a time (MMTk) have runs made of neighbouring slots, in which each multiple of 8
 * bytes is a slot. */
#include "retain/heap_index.h"

#define GRANULE 14
#define MOST_IDS (1u << 29)
#define PAGE_IDS 6 /* an entry of `pages` for each 64 numbers */
#define SINGLE_STEP 8
#define NEIGHBOURS 16u        /* granules whose entries are side by side */
#define STEP (NEIGHBOURS + 1) /* to the next entry; odd, so that it comes to all */

static bool add_run(struct culet_memory *memory, struct culet_heap_index *index, uintptr_t start, uintptr_t past,
                    size_t slot_bytes)
{
    uint64_t units = slot_bytes / 8;

    return culet_heap_runs_add(memory, &index->runs,
                               (struct culet_heap_run){start, past, 0, (uint32_t)slot_bytes,
                                                       (uint32_t)(((UINT64_C(1) << 32) + units - 1) / units)});
}

/* Of a single slot: the run before it grows if both are in one granule. */
static bool add_single(struct culet_memory *memory, struct culet_heap_index *index, uintptr_t start, uintptr_t past)
{
    struct culet_heap_run *last = index->runs.count > 0 ? &index->runs.items[index->runs.count - 1] : NULL;

    if (last != NULL && last->slot_bytes == SINGLE_STEP && last->past <= start &&
        last->start >> GRANULE == start >> GRANULE) {
        last->past = past;
        return true;
    }
    return add_run(memory, index, start, past, SINGLE_STEP);
}

bool culet_heap_index_add(struct culet_memory *memory, struct culet_heap_index *index, uintptr_t start, uintptr_t past,
                          size_t slot_bytes)
{
    if (past <= start || slot_bytes < 8 || slot_bytes % 8 != 0)
        return true;
    if (past - start == slot_bytes)
        return add_single(memory, index, start, past);
    return add_run(memory, index, start, past, slot_bytes);
}

static int by_start(const void *one, const void *other)
{
    const struct culet_heap_run *a = one, *b = other;

    return (a->start > b->start) - (a->start < b->start);
}

static uint32_t slot_of(const struct culet_heap_index *index, uintptr_t granule)
{
    uint64_t hash = granule / NEIGHBOURS * UINT64_C(0x9e3779b97f4a7c15);

    return ((uint32_t)(hash >> 32) * NEIGHBOURS + granule % NEIGHBOURS) & index->mask;
}

static void insert(struct culet_heap_index *index, uintptr_t granule, uint32_t run)
{
    uint32_t at = slot_of(index, granule);

    while (index->table.items[at] != 0)
        at = (at + STEP) & index->mask;
    index->table.items[at] = run + 1;
}

/* Numbers the slots; behind the last run is the next number. Returns the number of granules; 0: too many slots. */
static size_t number(struct culet_heap_index *index)
{
    size_t granules = 1;
    uint64_t ids = 0;

    for (size_t i = 0; i < index->runs.count; i++) {
        struct culet_heap_run *run = &index->runs.items[i];
        run->first = (uint32_t)ids;
        ids += (run->past - run->start) / run->slot_bytes;
        granules += ((run->past - 1) >> GRANULE) - (run->start >> GRANULE) + 1;
        if (ids > MOST_IDS)
            return 0;
    }
    index->ids = index->runs.items[index->runs.count].first = (uint32_t)ids;
    return granules;
}

bool culet_heap_index_make(struct culet_memory *memory, struct culet_heap_index *index)
{
    size_t granules, capacity = 64, page = 0;

    if (!culet_heap_runs_reserve(memory, &index->runs, index->runs.count + 1))
        return false;
    culet_heap_runs_sort(&index->runs, by_start);
    granules = number(index);
    if (granules == 0) {
        memory->failed = true;
        return false;
    }
    while (capacity < granules * 2)
        capacity *= 2;
    index->mask = (uint32_t)capacity - 1;
    if (!culet_numbers_reserve(memory, &index->table, capacity) ||
        !culet_numbers_reserve(memory, &index->pages, (index->ids >> PAGE_IDS) + 1))
        return false;
    for (uint32_t i = 0; i < index->runs.count; i++) {
        const struct culet_heap_run *run = &index->runs.items[i];
        for (uintptr_t at = run->start >> GRANULE; at <= (run->past - 1) >> GRANULE; at++)
            insert(index, at, i);
        for (; page << PAGE_IDS < run[1].first; page++)
            index->pages.items[page] = i;
    }
    return true;
}

uint32_t culet_heap_index_id(const struct culet_heap_index *index, uintptr_t address)
{
    uint32_t at = slot_of(index, address >> GRANULE), found;

    for (; (found = index->table.items[at]) != 0; at = (at + STEP) & index->mask) {
        const struct culet_heap_run *run = &index->runs.items[found - 1];
        if (address >= run->start && address < run->past) {
            uint64_t offset = address - run->start;
            uint32_t slot = (uint32_t)(((offset >> 3) * run->reciprocal) >> 32);
            return (uint64_t)slot * run->slot_bytes == offset ? run->first + slot : CULET_NO_ID;
        }
    }
    return CULET_NO_ID;
}

const struct culet_heap_run *culet_heap_index_run(const struct culet_heap_index *index, uint32_t id)
{
    const struct culet_heap_run *run = &index->runs.items[index->pages.items[id >> PAGE_IDS]];

    while (id >= run[1].first)
        run++;
    return run;
}
