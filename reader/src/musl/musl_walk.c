#include "musl/musl_heap.h"

#include "regions/region_records.h"

#include <string.h>

/* ---- regions ---- */

/* A group in a library's last page leaves the mapping its name. */
static void name_mappings(struct culet_reading *reading, uint64_t start, uint64_t end)
{
    const struct culet_mapping *mapping = culet_maps_at(&reading->maps, start);

    if (mapping && !mapping->inode)
        culet_maps_name_range(&reading->maps, start, end, "malloc", NULL);
}

static struct culet_region *new_region(struct culet_reading *reading, struct culet_musl *heap, const char *kind,
                                       uint64_t start, uint64_t end, bool full)
{
    struct culet_region *region = culet_reading_new_region(reading, kind, CULET_MUSL_ARENA, start, end, full);

    if (!region) {
        heap->inconsistent++;
        return NULL;
    }
    culet_reading_note_states_yielding(reading, region, start, end);
    name_mappings(reading, start, end);
    return region;
}

void culet_musl_walk_areas(struct culet_reading *reading, struct culet_musl *heap)
{
    for (size_t i = 0, next; i < heap->area_count; i = next) {
        for (next = i + 1; next < heap->area_count && heap->areas[next] == heap->areas[next - 1] + MUSL_AREA_BYTES;)
            next++;
        new_region(reading, heap, "metadata", heap->areas[i], heap->areas[next - 1] + MUSL_AREA_BYTES, true);
        culet_reading_yield(reading);
    }
}

/* ---- slots ---- */

struct walk {
    struct culet_reading *reading;
    struct culet_musl *heap;
    struct culet_region *region;
    uint64_t at; /* address of what comes next */
    size_t next; /* group */
};

/* The next `bytes` of the region. */
static void add(struct walk *walk, uint64_t bytes, enum culet_block_state state)
{
    struct culet_region *region = walk->region;

    if (!bytes)
        return;
    culet_region_add_block(&walk->reading->regions, region, bytes, state);
    if (state == CULET_BLOCK_USED)
        culet_region_use(region, walk->at, walk->at + bytes);
    else if (state == CULET_BLOCK_OVERHEAD)
        culet_region_add_overhead(region, walk->at, walk->at + bytes);
    walk->at += bytes;
}

static void add_slot(struct walk *walk, const struct culet_musl_group *group, bool used)
{
    struct culet_musl *heap = walk->heap;
    enum culet_block_state state = used ? CULET_BLOCK_USED : CULET_BLOCK_FREE;

    add(walk, group->slot, state);
    culet_histogram_add(&heap->sizes, state, group->slot, 1);
    heap->used_bytes += used ? group->slot : 0;
}

/* Counts the groups before an address, which begin in no slot. */
static void skip_to(struct walk *walk, uint64_t address)
{
    struct culet_musl *heap = walk->heap;

    for (; walk->next < heap->group_count && heap->groups[walk->next].start < address; walk->next++)
        heap->inconsistent++;
}

/* The group that begins the used slot, if there is one. */
static const struct culet_musl_group *group_in(struct walk *walk, uint64_t slot, uint64_t end)
{
    const struct culet_musl *heap = walk->heap;

    skip_to(walk, slot);
    const struct culet_musl_group *group = &heap->groups[walk->next];
    if (walk->next == heap->group_count || group->start != slot || group->end > end || group->mapped)
        return NULL;
    walk->next++;
    return group;
}

/* A group in a slot is shorter than the slot, and its slots are of a lower class: there are at most as many levels as
 * classes. */
static void walk_group(struct walk *walk, const struct culet_musl_group *group)
{
    add(walk, MUSL_GROUP_HEADER_BYTES, CULET_BLOCK_OVERHEAD);
    for (unsigned i = 0; i < group->slots; i++) {
        bool used = !(group->unused >> i & 1);
        uint64_t end = walk->at + group->slot;
        const struct culet_musl_group *inner = used ? group_in(walk, walk->at, end) : NULL;
        if (inner)
            walk_group(walk, inner);
        else
            add_slot(walk, group, used);
        add(walk, end - walk->at, CULET_BLOCK_OVERHEAD);
    }
    add(walk, group->end - walk->at, CULET_BLOCK_OVERHEAD);
}

/* A block with a mapping of its own: with the header, as the kernel gave it. */
static void walk_large(struct walk *walk, const struct culet_musl_group *group)
{
    struct culet_musl *heap = walk->heap;
    uint64_t bytes = group->end - group->start;

    culet_region_add_block(&walk->reading->regions, walk->region, bytes, CULET_BLOCK_USED);
    culet_histogram_add(&heap->sizes, CULET_BLOCK_USED, bytes, 1);
    heap->large_bytes += bytes;
    heap->large_blocks++;
}

void culet_musl_walk_groups(struct culet_reading *reading, struct culet_musl *heap)
{
    struct walk walk = {.reading = reading, .heap = heap};

    while (walk.next < heap->group_count && !reading->pages.exhausted) {
        const struct culet_musl_group *group = &heap->groups[walk.next++];
        bool large = group->mapped && group->slots == 1 && !(group->unused & 1);
        walk.region = new_region(reading, heap, large ? "large" : "slabs", group->start, group->end, large);
        if (!walk.region)
            continue;
        walk.at = group->start;
        if (large) {
            walk_large(&walk, group);
        } else {
            walk_group(&walk, group);
            heap->heaps++;
            heap->system_bytes += group->end - group->start;
        }
        skip_to(&walk, walk.region->end);
        culet_reading_yield(reading);
    }
}
