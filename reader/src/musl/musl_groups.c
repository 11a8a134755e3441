#include "musl/musl_heap.h"

#include "base/bytes.h"
#include "base/cycle.h"

#include <stdlib.h>
#include <string.h>

/* Areas between two looks at the clock. */
#define PER_CHECK 16u

/* A thread may have been stopped while it changed the metas: the process is released and paused again. */
#define MOST_TRIES 8u

/* ---- metas ---- */

/* What the numbers say of the group's slots. False if they cannot be. */
static bool measure(struct culet_musl_group *group, uint64_t numbers)
{
    uint64_t pages = MUSL_META_MAPPED_PAGES(numbers), bytes = pages * 4096;
    unsigned klass = MUSL_META_CLASS(numbers);

    group->slots = (uint8_t)(MUSL_META_LAST_SLOT(numbers) + 1);
    group->klass = (uint8_t)klass;
    group->mapped = pages != 0;
    if (group->mapped && group->slots == 1) {
        group->slot = bytes - MUSL_GROUP_HEADER_BYTES;
        group->end = group->start + bytes;
        return (klass < MUSL_CLASSES || klass == MUSL_CLASS_NONE) && group->end > group->start;
    }
    if (klass >= MUSL_CLASSES)
        return false;
    group->slot = UINT64_C(16) * musl_class_units[klass];
    uint64_t all = MUSL_GROUP_HEADER_BYTES + group->slots * group->slot;
    group->end = group->start + (group->mapped ? bytes : all);
    return group->end > group->start && (!group->mapped || bytes >= all);
}

static void add_group(struct culet_musl *heap, uint64_t address, const unsigned char *meta)
{
    uint64_t start = culet_word_at(meta + MUSL_META_GROUP);
    struct culet_musl_group group = {.start = start,
                                     .meta = address,
                                     .unused = culet_int_at(meta + MUSL_META_AVAILABLE) |
                                               culet_int_at(meta + MUSL_META_FREED)};

    if (!start)
        return;
    if (start % 16 || !measure(&group, culet_word_at(meta + MUSL_META_NUMBERS))) {
        heap->inconsistent++;
        return;
    }
    CULET_APPEND(heap->groups, heap->group_count, heap->group_room) = group;
    if (group.klass < MUSL_CLASSES && MUSL_META_FREEABLE(culet_word_at(meta + MUSL_META_NUMBERS)))
        heap->slots[group.klass] += group.slots;
}

/* Returns the next area; 0 for none. */
static uint64_t read_area(struct culet_reading *reading, struct culet_musl *heap, uint64_t address)
{
    const unsigned char *area = culet_memory_at(&reading->memory, address, MUSL_AREA_BYTES);

    if (!area) {
        heap->unreadable++;
        return 0;
    }
    if (culet_word_at(area + MUSL_AREA_SECRET) != heap->secret ||
        culet_int_at(area + MUSL_AREA_COUNT) != MUSL_AREA_META_COUNT) {
        heap->inconsistent++;
        return 0;
    }
    CULET_APPEND(heap->areas, heap->area_count, heap->area_room) = address;
    for (unsigned i = 0; i < MUSL_AREA_META_COUNT; i++) {
        uint64_t offset = MUSL_AREA_METAS + i * MUSL_META_BYTES;
        add_group(heap, address + offset, area + offset);
    }
    return culet_word_at(area + MUSL_AREA_NEXT);
}

static void read_areas(struct culet_reading *reading, struct culet_musl *heap)
{
    struct culet_cycle cycle = {0};
    uint64_t at = 0;

    culet_memory_word(&reading->memory, heap->context + heap->shift + MUSL_CONTEXT_FIRST_AREA, &at);
    while (at && !reading->pages.exhausted) {
        if (at % MUSL_AREA_BYTES || culet_cycle_closes(&cycle, at)) {
            heap->inconsistent++;
            return;
        }
        at = read_area(reading, heap, at);
        if (heap->area_count % PER_CHECK == 0)
            heap->yielded |= culet_reading_yield(reading);
    }
}

/* musl counts the slots of each class, too. */
static void compare_counts(struct culet_reading *reading, struct culet_musl *heap)
{
    uint64_t counted[MUSL_CLASSES];

    if (heap->yielded || reading->target.mode == CULET_LIVE || heap->unreadable ||
        !culet_memory_copy(&reading->memory, heap->context + heap->shift + MUSL_CONTEXT_SLOTS, counted, sizeof counted))
        return;
    for (unsigned i = 0; i < MUSL_CLASSES; i++)
        heap->inconsistent += counted[i] != heap->slots[i];
}

/* ---- groups ---- */

/* A group begins with the address of its meta. One that is in swap cannot be asked, and is believed. */
static void verify(struct culet_reading *reading, struct culet_musl *heap)
{
    uint64_t *addresses = culet_new(CULET_MEMORY_BATCH, sizeof *addresses);
    uint64_t *metas = culet_new(CULET_MEMORY_BATCH, sizeof *metas);
    bool *got = culet_new(CULET_MEMORY_BATCH, sizeof *got);
    size_t kept = 0;

    for (size_t i = 0, count; i < heap->group_count && !reading->pages.exhausted; i += count) {
        count = heap->group_count - i < CULET_MEMORY_BATCH ? heap->group_count - i : CULET_MEMORY_BATCH;
        for (size_t n = 0; n < count; n++)
            addresses[n] = heap->groups[i + n].start;
        culet_memory_copy_batch(&reading->memory, addresses, count, sizeof *metas, metas, got);
        for (size_t n = 0; n < count; n++) {
            if (got[n] ? metas[n] == heap->groups[i + n].meta
                       : culet_pages_at(&reading->pages, addresses[n]) & CULET_PAGE_SWAPPED)
                heap->groups[kept++] = heap->groups[i + n];
            else
                heap->inconsistent++;
        }
        culet_reading_yield(reading);
    }
    heap->group_count = kept;
    free(addresses);
    free(metas);
    free(got);
}

/* By address; the longer one first. */
static int compare(const void *a, const void *b)
{
    const struct culet_musl_group *one = a, *other = b;

    if (one->start != other->start)
        return one->start < other->start ? -1 : 1;
    return (one->end < other->end) - (one->end > other->end);
}

static void read_once(struct culet_reading *reading, struct culet_musl *heap)
{
    heap->area_count = heap->group_count = 0;
    heap->inconsistent = heap->unreadable = 0;
    heap->yielded = false;
    memset(heap->slots, 0, sizeof heap->slots);
    read_areas(reading, heap);
    compare_counts(reading, heap);
    verify(reading, heap);
}

void culet_musl_groups_read(struct culet_reading *reading, struct culet_musl *heap)
{
    for (unsigned tries = 1; read_once(reading, heap), heap->inconsistent && tries < MOST_TRIES; tries++) {
        if (reading->pages.exhausted)
            break;
        culet_target_release(&reading->target);
        culet_reading_pause(reading);
    }
    if (heap->group_count)
        qsort(heap->groups, heap->group_count, sizeof *heap->groups, compare);
    if (heap->area_count)
        qsort(heap->areas, heap->area_count, sizeof *heap->areas, culet_by_word);
}
