#include "glibc/glibc_heap.h"

#include "base/bytes.h"
#include "base/cycle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Offsets from `top` in struct malloc_state (glibc 2.26 to 2.43). */
#define BINS 16u
#define BIN_PAIRS 127u
#define NEXT 2064u
#define SYSTEM_BYTES 2088u
#define ARENA_END 2104u

#define MOST_ARENAS 65536u
/* Arenas followed between two looks at the clock. */
#define ARENAS_PER_CHECK 256u

/* Offset of `top`: with fastbins (2.27 to 2.42), without have_fastchunks (2.26), without fastbins (2.43). */
static const unsigned top_offsets[] = {96, 88, 8};

/* ---- finding main_arena ---- */

/* Whether two pointers can be a bin's: to chunks, or to the bin itself, which need not be aligned like a chunk. */
static bool can_be_bin(uint64_t bin, uint64_t fd, uint64_t bk)
{
    if (fd == bin || bk == bin)
        return fd == bk;
    return fd && bk && !((fd | bk) & 15);
}

/* Whether the bin is empty, or its first and last chunk point back. */
static bool points_back(struct culet_reading *reading, uint64_t bin, uint64_t fd, uint64_t bk)
{
    uint64_t back;

    if (fd == bin)
        return true;
    return culet_memory_word(&reading->memory, fd + 24, &back) && back == bin &&
           culet_memory_word(&reading->memory, bk + 16, &back) && back == bin;
}

/* How often a bin is read again while the process runs. */
#define BIN_TRIES 3u

/* Whether the pair of pointers at `pair` is a consistent bin. */
static bool is_bin(struct culet_reading *reading, const unsigned char *data, uint64_t base, uint64_t pair)
{
    uint64_t bin = pair - 16, fd = culet_word_at(data + (pair - base)), bk = culet_word_at(data + (pair - base) + 8);

    if (!can_be_bin(bin, fd, bk))
        return false;
    bool consistent = points_back(reading, bin, fd, bk);
    for (unsigned i = 0; i < BIN_TRIES && !consistent && !reading->target.paused; i++) {
        culet_pages_forget(&reading->pages);
        culet_memory_forget(&reading->memory);
        consistent = culet_memory_word(&reading->memory, pair, &fd) &&
                     culet_memory_word(&reading->memory, pair + 8, &bk) && can_be_bin(bin, fd, bk) &&
                     points_back(reading, bin, fd, bk);
    }
    return consistent;
}

/* So many bins may be inconsistent, because a thread was stopped while it changed them. Other data hardly ever looks
 * like a bin. */
#define WRONG_BINS 8u

/* Whether the 127 bins that end with the pair at `last` are an arena's. */
static bool are_bins(struct culet_reading *reading, const unsigned char *data, uint64_t base, uint64_t last)
{
    unsigned wrong = 0;

    /* The first bin first: `last` is mostly an empty bin of small chunks, and what precedes these is no bin. */
    for (unsigned i = BIN_PAIRS; i-- > 0 && wrong < WRONG_BINS;)
        wrong += !is_bin(reading, data, base, last - 16 * i);
    return wrong < WRONG_BINS;
}

/* Follows `next` from the arena `first` on. Returns the number of arenas; 0 if the list is not circular. */
static size_t follow_list(struct culet_reading *reading, uint64_t first, unsigned top_offset, uint64_t *arenas,
                          size_t room)
{
    uint64_t at = first;
    struct culet_cycle cycle = {0};
    size_t count = 0;

    do {
        if (count < room)
            arenas[count] = at;
        if (++count > MOST_ARENAS || !at || at & 7 || culet_cycle_closes(&cycle, at) ||
            !culet_memory_word(&reading->memory, at + top_offset + NEXT, &at))
            return 0;
        if (count % ARENAS_PER_CHECK == 0)
            culet_reading_yield(reading);
    } while (at != first);
    return count;
}

bool culet_glibc_arenas_find_main(struct culet_reading *reading, struct culet_glibc *heap, const unsigned char *data,
                                  uint64_t base, size_t bytes)
{
    const size_t before = BINS + 16 * (BIN_PAIRS - 1), after = ARENA_END - BINS - 16 * BIN_PAIRS + 16;

    /* Bin 127 is never used, so both of its pointers are known. */
    for (size_t at = before; at + after <= bytes; at += 8) {
        uint64_t pair = base + at;
        if (culet_word_at(data + at) != pair - 16 || culet_word_at(data + at + 8) != pair - 16)
            continue;
        culet_reading_yield(reading);
        if (reading->pages.exhausted || !are_bins(reading, data, base, pair))
            continue;
        uint64_t top = pair - before;
        for (size_t i = 0; i < sizeof top_offsets / sizeof *top_offsets; i++)
            if (top >= base + top_offsets[i] && follow_list(reading, top - top_offsets[i], top_offsets[i], NULL, 0)) {
                heap->main = top - top_offsets[i];
                heap->top_offset = top_offsets[i];
                return true;
            }
    }
    return false;
}

/* ---- arenas ---- */

void culet_glibc_break(struct culet_glibc_arena *arena, const char *why, ...)
{
    va_list arguments;

    if (arena->broken)
        return;
    arena->broken = true;
    va_start(arguments, why);
    vsnprintf(arena->why, sizeof arena->why, why, arguments);
    va_end(arguments);
}

bool culet_glibc_arenas_read(struct culet_reading *reading, struct culet_glibc *heap)
{
    uint64_t *found = culet_new(MOST_ARENAS, sizeof *found);
    size_t count = follow_list(reading, heap->main, heap->top_offset, found, MOST_ARENAS);

    heap->arena_count = 0;
    for (size_t i = 0; i < count; i++)
        CULET_APPEND(heap->arenas, heap->arena_count, heap->arena_room) =
            (struct culet_glibc_arena){.id = (uint32_t)i, .address = found[i]};
    free(found);
    return count;
}

bool culet_glibc_arena_refresh(struct culet_reading *reading, const struct culet_glibc *heap,
                               struct culet_glibc_arena *arena)
{
    uint64_t top_field = arena->address + heap->top_offset, top, size;

    if (!culet_memory_word(&reading->memory, top_field, &top) ||
        !culet_memory_word(&reading->memory, top_field + SYSTEM_BYTES, &arena->system_bytes))
        return false;
    arena->top = arena->top_bytes = 0;
    /* Before the first allocation, `top` is the unsorted bin. */
    if (!top || top == top_field)
        return true;
    if (top & 15 || !culet_memory_word(&reading->memory, top + 8, &size))
        return false;
    arena->top = top;
    arena->top_bytes = size & ~GLIBC_CHUNK_FLAGS;
    return true;
}

bool culet_glibc_arena_top_end(struct culet_reading *reading, const struct culet_glibc_arena *arena, uint64_t start,
                               uint64_t *end)
{
    uint64_t top_end = arena->top + arena->top_bytes;

    if (arena->top < start || top_end <= arena->top || !culet_reading_mapped_end(reading, start, top_end))
        return false;
    *end = top_end;
    return true;
}

/* ---- heaps ---- */

/* HEAP_MAX_SIZE: the size for which both the heap of `top` and the arena's own heap begin with a pointer to the
 * arena. 64 MB unless huge pages are enabled. */
static uint64_t find_heap_max(struct culet_reading *reading, const struct culet_glibc_arena *arena)
{
    static const uint64_t sizes[] = {UINT64_C(64) << 20, UINT64_C(8) << 20, UINT64_C(32) << 20, UINT64_C(128) << 20,
                                     UINT64_C(4) << 30,  UINT64_C(1) << 20, UINT64_C(2) << 30};
    uint64_t one, other;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (culet_memory_word(&reading->memory, arena->top & ~(sizes[i] - 1), &one) &&
            culet_memory_word(&reading->memory, arena->address & ~(sizes[i] - 1), &other) && one == arena->address &&
            other == arena->address && (arena->address & (sizes[i] - 1)) < 0x100)
            return sizes[i];
    return 0;
}

size_t culet_glibc_arena_heaps(struct culet_reading *reading, struct culet_glibc *heap, struct culet_glibc_arena *arena,
                               uint64_t *heaps, size_t room)
{
    size_t count = 0;
    struct culet_cycle cycle = {0};
    uint64_t at, of_arena;

    if (!heap->heap_max)
        heap->heap_max = find_heap_max(reading, arena);
    if (!heap->heap_max || !arena->top) {
        culet_glibc_break(arena, "its heaps were not found");
        return 0;
    }
    at = arena->top & ~(heap->heap_max - 1);
    while (at && count < room) {
        if (at & (heap->heap_max - 1) || !culet_memory_word(&reading->memory, at, &of_arena) ||
            of_arena != arena->address) {
            culet_glibc_break(arena, "its heap at 0x%llx does not belong to it", (unsigned long long)at);
            break;
        }
        if (culet_cycle_closes(&cycle, at)) {
            culet_glibc_break(arena, "its list of heaps is circular");
            break;
        }
        heaps[count++] = at;
        if (!culet_memory_word(&reading->memory, at + 8, &at))
            break;
    }
    return count;
}

uint64_t culet_glibc_heap_first_chunk(const struct culet_glibc *heap, const struct culet_glibc_arena *arena,
                                      uint64_t start)
{
    /* struct heap_info lies before the arena in the arena's own heap. */
    uint64_t header = arena->address & (heap->heap_max - 1);

    if (start + header != arena->address)
        return start + header;
    /* After the arena, so that the user data (16 bytes on) is aligned. */
    return ((arena->address + heap->top_offset + ARENA_END + 31) & ~UINT64_C(15)) - 16;
}

uint64_t culet_glibc_heap_bytes(struct culet_reading *reading, const struct culet_glibc *heap,
                                const struct culet_glibc_arena *arena, uint64_t start)
{
    uint64_t of_arena, bytes;

    if (!culet_memory_word(&reading->memory, start, &of_arena) || of_arena != arena->address ||
        !culet_memory_word(&reading->memory, start + 16, &bytes))
        return 0;
    return bytes <= heap->heap_max && bytes % 8 == 0 && culet_reading_mapped_end(reading, start, start + bytes) ? bytes
                                                                                                                : 0;
}
