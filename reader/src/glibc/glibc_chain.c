#include "glibc/glibc_heap.h"

#include <string.h>

/* So many consistent chunks are no coincidence. */
#define PROOF 100000u

bool culet_glibc_chain(struct culet_reading *reading, struct culet_glibc *heap, uint64_t address, uint64_t end)
{
    uint64_t header[2], previous = GLIBC_CHUNK_PREV_INUSE;
    uint64_t before = 0;

    for (unsigned i = 0; i < PROOF && address != end; i++) {
        const void *at = heap->chain_steps && end - address >= sizeof header
                             ? culet_memory_at(&reading->memory, address, sizeof header)
                             : NULL;
        if (!at)
            return false;
        heap->chain_steps--;
        memcpy(header, at, sizeof header);
        uint64_t size = header[1] & ~GLIBC_CHUNK_FLAGS;
        bool free_before = !(header[1] & GLIBC_CHUNK_PREV_INUSE);
        if (free_before && (i == 0 || header[0] != before || !(previous & GLIBC_CHUNK_PREV_INUSE)))
            return false;
        /* Fenceposts end a contiguous part of the heap, and prove it. */
        if (size == 16 && i)
            return true;
        if (size < GLIBC_CHUNK_LEAST_BYTES || size & 15 || header[1] & (GLIBC_CHUNK_MMAPPED | GLIBC_CHUNK_NON_MAIN) ||
            size > end - address)
            return false;
        before = size;
        previous = header[1];
        address += size;
    }
    return true;
}

static bool can_go_on(struct culet_reading *reading, struct culet_glibc *heap, const struct culet_glibc_arena *arena,
                      uint64_t at, uint64_t size)
{
    return (size & GLIBC_CHUNK_FLAGS) == GLIBC_CHUNK_PREV_INUSE && size >= GLIBC_CHUNK_LEAST_BYTES && !(size & 8) &&
           culet_glibc_chain(reading, heap, at, arena->top);
}

bool culet_glibc_gap_end(struct culet_reading *reading, struct culet_glibc *heap, const struct culet_glibc_arena *arena,
                         struct culet_glibc_gap *gap, uint64_t from, uint64_t *next)
{
    uint64_t top = arena->top, at, size;
    unsigned shift = reading->pages.shift;

    if (gap->start != from)
        *gap = (struct culet_glibc_gap){.start = from, .searched_to = (from + 15) & ~UINT64_C(15)};
    for (at = gap->searched_to; at < top; at += 16) {
        if ((at & (reading->page_bytes - 1)) < 16 && culet_target_due(&reading->target)) {
            gap->searched_to = at;
            return false;
        }
        if (!culet_memory_word(&reading->memory, at + 8, &size)) {
            at = (culet_pages_next(&reading->pages, ((at + 8) >> shift) + 1, (top >> shift) + 1) << shift) - 16;
        } else if (can_go_on(reading, heap, arena, at, size)) {
            *next = at;
            return true;
        }
    }
    *next = top;
    return true;
}
