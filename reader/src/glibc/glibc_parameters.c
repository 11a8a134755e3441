#include "glibc/glibc_heap.h"

#include "base/bytes.h"

#include <string.h>

/* DEFAULT_MMAP_MAX: M_MMAP_MAX, unless the program changes it; few programs set a larger one. */
#define DEFAULT_MMAP_MAX 65536

/* Whether sbrk_base may be at `at`, by the members before it: from at - before on int n_mmaps, n_mmaps_max,
 * max_n_mmaps, no_dyn_threshold; from at - 16 on size_t mmapped_mem, max_mmapped_mem. */
static bool is_sbrk_base(const unsigned char *data, size_t at, unsigned before)
{
    int32_t counts[4];
    uint64_t mapped, most;

    memcpy(counts, data + at - before, sizeof counts);
    mapped = culet_word_at(data + at - 16);
    most = culet_word_at(data + at - 8);
    /* Multiples of pages, except from 2.43 on, where a grown chunk (mremap) adds the 16 bytes of its header. */
    return counts[0] >= 0 && counts[1] >= 0 && counts[2] >= counts[0] && (counts[3] & ~1) == 0 && mapped <= most &&
           mapped % 16 == 0 && most % 16 == 0 && !counts[0] == !mapped && !counts[2] == !most &&
           (counts[1] == DEFAULT_MMAP_MAX || (counts[0] <= counts[1] && most));
}

/* Where sbrk_base may point, the safest criterion first, because a static program has much data that looks like mp_:
 * into brk's heap; into a mapping, if brk failed from the start; nowhere, if the main arena has never asked for
 * memory. */
enum base { IN_BRK, IN_MAPPING, NOWHERE, BASES };

static bool is_base(struct culet_reading *reading, uint64_t word, uint32_t most_mmaps, enum base kind)
{
    const struct culet_mapping *mapping = word ? culet_maps_at(&reading->maps, word) : NULL;

    if (kind == NOWHERE)
        return !word && most_mmaps == DEFAULT_MMAP_MAX;
    return mapping && culet_mapping_is_heap_like(mapping) &&
           (kind == IN_MAPPING || strcmp(mapping->path, "[heap]") == 0);
}

static bool find(struct culet_reading *reading, struct culet_glibc *heap, const unsigned char *data, uint64_t base,
                 size_t bytes, unsigned before, enum base kind)
{
    for (size_t at = 40; at + 8 <= bytes; at += 8) {
        if (!is_sbrk_base(data, at, before))
            continue;
        if (!is_base(reading, culet_word_at(data + at), culet_int_at(data + at - before + 4), kind))
            continue;
        heap->counts_before = before;
        heap->sbrk_field = base + at;
        return true;
    }
    return false;
}

void culet_glibc_parameters_find(struct culet_reading *reading, struct culet_glibc *heap, const unsigned char *data,
                                 uint64_t base, size_t bytes)
{
    for (enum base kind = IN_BRK; kind < BASES; kind++)
        if (find(reading, heap, data, base, bytes, CULET_GLIBC_COUNTS_NEW, kind) ||
            find(reading, heap, data, base, bytes, CULET_GLIBC_COUNTS_OLD, kind))
            return;
}

uint64_t culet_glibc_parameters_read(struct culet_reading *reading, struct culet_glibc *heap)
{
    uint64_t counts, base;

    if (!heap->sbrk_field || !culet_memory_word(&reading->memory, heap->sbrk_field - heap->counts_before, &counts) ||
        !culet_memory_word(&reading->memory, heap->sbrk_field - 16, &heap->mmapped_bytes) ||
        !culet_memory_word(&reading->memory, heap->sbrk_field, &base))
        return 0;
    heap->n_mmaps = counts & UINT32_MAX;
    return base;
}
