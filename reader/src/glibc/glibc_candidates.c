#include "glibc/glibc_candidates.h"

#include "base/bytes.h"
#include "base/search.h"

#include <stdlib.h>

/* The heap may grow while it is read: brk's upwards; new mappings are mostly below the others. */
#define GROWTH (UINT64_C(1) << 30)

static struct culet_range with_growth(uint64_t start, uint64_t end)
{
    return (struct culet_range){start > GROWTH ? start - GROWTH : 0, end + GROWTH};
}

/* Memory near brk and other mappings are terabytes apart: the widest gap divides them. */
void culet_glibc_candidates_set_bounds(struct culet_glibc_candidates *candidates, const struct culet_maps *maps)
{
    uint64_t first = 0, last = 0, widest = 0;
    struct culet_range gap = {0, 0};

    for (size_t i = 0; i < maps->count; i++) {
        const struct culet_mapping *mapping = &maps->all[i];
        if (!culet_mapping_is_heap_like(mapping))
            continue;
        if (last && mapping->start - last > widest) {
            widest = mapping->start - last;
            gap = (struct culet_range){last, mapping->start};
        }
        first = first ? first : mapping->start;
        last = mapping->end;
    }
    candidates->low = with_growth(first, gap.start ? gap.start : last);
    candidates->high = with_growth(gap.start ? gap.end : first, last);
}

void culet_glibc_candidates_add(struct culet_glibc_candidates *candidates, uint64_t chunk, uint64_t bytes,
                                uint64_t link)
{
    CULET_APPEND(candidates->all, candidates->count, candidates->room) =
        (struct culet_glibc_candidate){.chunk = chunk >> 4 & ((UINT64_C(1) << 44) - 1),
                                       .units = bytes >> 4 & ((1u << 18) - 1),
                                       .link = link & ((UINT64_C(1) << 48) - 1)};
}

void culet_glibc_candidates_end_region(struct culet_glibc_candidates *candidates, const struct culet_region *region,
                                       size_t first)
{
    CULET_APPEND(candidates->ranges, candidates->range_count, candidates->range_room) =
        (struct culet_glibc_candidate_range){
            .start = region->start, .end = region->end, .first = first, .past = candidates->count};
}

void culet_glibc_candidates_sort(struct culet_glibc_candidates *candidates)
{
    if (candidates->range_count)
        qsort(candidates->ranges, candidates->range_count, sizeof *candidates->ranges, culet_by_word);
}

struct culet_glibc_candidate_range culet_glibc_candidates_of(const struct culet_glibc_candidates *candidates,
                                                             uint64_t address)
{
    size_t at = CULET_FIRST_WHERE(i, 0, candidates->range_count, candidates->ranges[i].end > address);

    if (at < candidates->range_count && candidates->ranges[at].start <= address)
        return candidates->ranges[at];
    return (struct culet_glibc_candidate_range){0};
}

size_t culet_glibc_candidates_from(const struct culet_glibc_candidates *candidates,
                                   const struct culet_glibc_candidate_range *range, uint64_t address)
{
    return CULET_FIRST_WHERE(i, range->first, range->past, culet_glibc_candidate_chunk(&candidates->all[i]) >= address);
}

struct culet_glibc_candidate *culet_glibc_candidates_at(const struct culet_glibc_candidates *candidates, uint64_t chunk)
{
    struct culet_glibc_candidate_range range = culet_glibc_candidates_of(candidates, chunk);
    size_t at = culet_glibc_candidates_from(candidates, &range, chunk);

    return at < range.past && culet_glibc_candidate_chunk(&candidates->all[at]) == chunk ? &candidates->all[at] : NULL;
}
