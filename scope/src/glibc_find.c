#define _GNU_SOURCE
#include "glibc.h"
#include "lap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Offsets from an arena's `top` (glibc 2.26 to 2.43). */
#define BINS 16u
#define BIN_PAIRS 127u
#define NEXT 2064u
#define SYSTEM 2088u
#define TOP_END 2104u /* the arena's end */

/* A data segment larger than this is not scanned: a statically linked program's. */
#define MOST_DATA (UINT64_C(64) << 20)
#define MOST_ARENAS 65536u
/* Followed without a look at the clock. */
#define ARENAS_AT_ONCE 256u

/* `top` is that far into the arena: with fastbins (2.27 to 2.42), before `have_fastchunks` (2.26), without (2.43). */
static const unsigned top_offsets[] = {96, 88, 8};

static uint64_t word_of(const unsigned char *data, size_t at)
{
    uint64_t word;

    memcpy(&word, data + at, sizeof word);
    return word;
}

static bool is_libc(const char *path)
{
    const char *name = strrchr(path, '/');

    return name && (strncmp(name, "/libc.so.6", 10) == 0 || strncmp(name, "/libc-2.", 8) == 0);
}

/* Whether two pointers can be a bin's: to chunks, or to itself, which need not be aligned as chunks are. */
static bool may_be_bin(uint64_t bin, uint64_t fd, uint64_t bk)
{
    if (fd == bin || bk == bin)
        return fd == bk;
    return fd && bk && !((fd | bk) & 15);
}

/* A bin is empty, or its first and last chunk point back. */
static bool points_back(struct culet_scope *scope, uint64_t bin, uint64_t fd, uint64_t bk)
{
    uint64_t back;

    if (fd == bin)
        return true;
    return culet_memory_word(&scope->memory, fd + 24, &back) && back == bin &&
           culet_memory_word(&scope->memory, bk + 16, &back) && back == bin;
}

/* While the process runs, so often a bin is looked at again, whole. */
#define BIN_TRIES 3u

/* The pair of pointers at `pair` is a bin's. */
static bool bin_holds(struct culet_scope *scope, const unsigned char *data, uint64_t base, uint64_t pair)
{
    uint64_t bin = pair - 16, fd = word_of(data, pair - base), bk = word_of(data, pair - base + 8);
    bool runs = !culet_target_still(&scope->target);

    if (!may_be_bin(bin, fd, bk))
        return false;
    bool holds = points_back(scope, bin, fd, bk);
    for (unsigned i = 0; i < BIN_TRIES && !holds && runs; i++) {
        culet_pages_forget(&scope->pages);
        culet_memory_forget(&scope->memory);
        holds = culet_memory_word(&scope->memory, pair, &fd) && culet_memory_word(&scope->memory, pair + 8, &bk) &&
                may_be_bin(bin, fd, bk) && points_back(scope, bin, fd, bk);
    }
    return holds;
}

/* So many bins may be out of order: the process may have been stopped while it changed them. Where there are no bins,
 * hardly any looks like one. */
#define WRONG_BINS 8u

/* Whether the 127 bins that end with the pair at `last` are an arena's. */
static bool bins_hold(struct culet_scope *scope, const unsigned char *data, uint64_t base, uint64_t last)
{
    unsigned wrong = 0;

    /* The first bin first: `last` is mostly an empty bin of smaller chunks, and what is before them is not bins. */
    for (unsigned i = BIN_PAIRS; i-- > 0 && wrong < WRONG_BINS;)
        wrong += !bin_holds(scope, data, base, last - 16 * i);
    return wrong < WRONG_BINS;
}

/* Follows `next` from main_arena on. Returns the number of arenas, 0 when the ring does not close. */
static size_t follow_ring(struct culet_scope *scope, uint64_t first, unsigned top_at, uint64_t *arenas, size_t room)
{
    uint64_t at = first;
    struct culet_lap lap = {0};
    size_t count = 0;

    do {
        if (count < room)
            arenas[count] = at;
        if (++count > MOST_ARENAS || !at || at & 7 || culet_lap_closes(&lap, at) ||
            !culet_memory_word(&scope->memory, at + top_at + NEXT, &at))
            return 0;
        if (count % ARENAS_AT_ONCE == 0)
            culet_scope_breathe(scope);
    } while (at != first);
    return count;
}

/* Finds main_arena among the data of one mapping. */
static bool search(struct culet_scope *scope, struct culet_glibc *heap, const unsigned char *data, uint64_t base,
                   size_t bytes)
{
    const size_t before = BINS + 16 * (BIN_PAIRS - 1), after = TOP_END - BINS - 16 * BIN_PAIRS + 16;

    /* Bin 127 is never used, so both its pointers are known. */
    for (size_t at = before; at + after <= bytes; at += 8) {
        uint64_t pair = base + at;
        if (word_of(data, at) != pair - 16 || word_of(data, at + 8) != pair - 16)
            continue;
        culet_scope_breathe(scope);
        if (scope->pages.spent || !bins_hold(scope, data, base, pair))
            continue;
        uint64_t top = pair - before;
        for (size_t i = 0; i < sizeof top_offsets / sizeof *top_offsets; i++)
            if (top >= base + top_offsets[i] && follow_ring(scope, top - top_offsets[i], top_offsets[i], NULL, 0)) {
                heap->main = top - top_offsets[i];
                heap->top_at = top_offsets[i];
                return true;
            }
    }
    return false;
}

/* Whether sbrk_base may be at `at` of the data, by the numbers before it in struct malloc_par: from at - before on
 * int n_mmaps, n_mmaps_max, max_n_mmaps, no_dyn_threshold; from at - 16 on size_t mmapped_mem, max_mmapped_mem. */
static bool is_sbrk_base(const unsigned char *data, size_t at, unsigned before)
{
    int32_t counts[4];
    uint64_t mapped, most;

    memcpy(counts, data + at - before, sizeof counts);
    mapped = word_of(data, at - 16);
    most = word_of(data, at - 8);
    /* Multiples of pages, but from 2.43 on, where a grown block (mremap) adds the sixteen bytes of its header. */
    return counts[0] >= 0 && counts[1] >= 0 && counts[2] >= counts[0] && (counts[3] & ~1) == 0 && mapped <= most &&
           mapped % 16 == 0 && most % 16 == 0 && !counts[0] == !mapped && !counts[2] == !most &&
           /* M_MMAP_MAX is 65536 unless the program says otherwise, and rarely more. */
           (counts[1] == 65536 || (counts[0] <= counts[1] && most));
}

/* What sbrk_base may be: in the heap by brk; where brk failed from the start, in a mapping; nought where the main arena has
 * never asked for memory. The surest is looked for first: in a program with everything in it much else looks like mp_. */
enum base { IN_BRK, IN_MAPPING, NOWHERE, BASES };

static bool is_base(struct culet_scope *scope, uint64_t word, int32_t most_mmaps, enum base kind)
{
    const struct culet_mapping *mapping = word ? culet_maps_at(&scope->maps, word) : NULL;

    if (kind == NOWHERE)
        return !word && most_mmaps == 65536;
    return mapping && culet_mapping_is_heap_like(mapping) &&
           (kind == IN_MAPPING || strcmp(mapping->path, "[heap]") == 0);
}

/* Finds mp_ in the data, if its counts are that far before sbrk_base. */
static bool find_parameters(struct culet_scope *scope, struct culet_glibc *heap, const unsigned char *data,
                            uint64_t base, size_t bytes, unsigned before, enum base kind)
{
    for (size_t at = 40; at + 8 <= bytes; at += 8) {
        int32_t most;
        if (!is_sbrk_base(data, at, before))
            continue;
        memcpy(&most, data + at - before + 4, sizeof most);
        if (!is_base(scope, word_of(data, at), most, kind))
            continue;
        heap->counts_before = before;
        heap->sbrk_field = base + at;
        return true;
    }
    return false;
}

static void search_parameters(struct culet_scope *scope, struct culet_glibc *heap, const unsigned char *data,
                              uint64_t base, size_t bytes)
{
    for (enum base kind = IN_BRK; kind < BASES; kind++)
        if (find_parameters(scope, heap, data, base, bytes, CULET_GLIBC_COUNTS_NEW, kind) ||
            find_parameters(scope, heap, data, base, bytes, CULET_GLIBC_COUNTS_OLD, kind))
            return;
}

static bool search_mapping(struct culet_scope *scope, struct culet_glibc *heap, const struct culet_mapping *mapping)
{
    size_t bytes = (size_t)(mapping->end - mapping->start);
    bool found;

    if (strncmp(mapping->perms, "rw", 2) != 0 || bytes > MOST_DATA)
        return false;
    unsigned char *data = culet_new(bytes, 1);
    culet_memory_copy(&scope->memory, mapping->start, data, bytes);
    found = search(scope, heap, data, mapping->start, bytes);
    if (found)
        search_parameters(scope, heap, data, mapping->start, bytes);
    free(data);
    return found;
}

static void find_text(struct culet_scope *scope, struct culet_glibc *heap, const struct culet_mapping *data)
{
    snprintf(heap->library, sizeof heap->library, "%s", data->path);
    for (size_t i = 0; i < scope->maps.count; i++) {
        const struct culet_mapping *mapping = &scope->maps.all[i];
        if (mapping->perms[2] == 'x' && mapping->inode == data->inode && strcmp(mapping->path, data->path) == 0) {
            heap->text_start = mapping->start;
            heap->text_end = mapping->end;
        }
    }
}

bool culet_glibc_find(struct culet_scope *scope, struct culet_glibc *heap)
{
    /* libc's own data, else the program's: it may be linked statically. */
    for (int statically = 0; statically < 2; statically++)
        for (size_t i = 0; i < scope->maps.count; i++) {
            const struct culet_mapping *mapping = &scope->maps.all[i];
            if (!mapping->inode || (statically ? strcmp(mapping->path, scope->program) != 0 : !is_libc(mapping->path)))
                continue;
            culet_scope_breathe(scope);
            if (!scope->pages.spent && search_mapping(scope, heap, mapping)) {
                find_text(scope, heap, mapping);
                return true;
            }
        }
    return false;
}

bool culet_glibc_ring(struct culet_scope *scope, struct culet_glibc *heap)
{
    uint64_t *found = culet_new(MOST_ARENAS, sizeof *found);
    size_t count = follow_ring(scope, heap->main, heap->top_at, found, MOST_ARENAS);

    heap->arena_count = 0;
    for (size_t i = 0; i < count; i++) {
        heap->arenas = culet_grow(heap->arenas, &heap->arena_room, i + 1, sizeof *heap->arenas);
        heap->arenas[i] = (struct culet_glibc_arena){.id = (uint32_t)i, .address = found[i]};
        heap->arena_count++;
    }
    free(found);
    return count;
}

bool culet_glibc_refresh(struct culet_scope *scope, const struct culet_glibc *heap, struct culet_glibc_arena *arena)
{
    uint64_t top_field = arena->address + heap->top_at, top, size;

    if (!culet_memory_word(&scope->memory, top_field, &top) ||
        !culet_memory_word(&scope->memory, top_field + SYSTEM, &arena->system_bytes))
        return false;
    arena->top = arena->top_bytes = 0;
    /* Before the first block, `top` is the unsorted bin. */
    if (!top || top == top_field)
        return true;
    if (top & 15 || !culet_memory_word(&scope->memory, top + 8, &size))
        return false;
    arena->top = top;
    arena->top_bytes = size & ~GLIBC_CHUNK_FLAGS;
    return true;
}

bool culet_glibc_top_end(struct culet_scope *scope, const struct culet_glibc_arena *arena, uint64_t start, uint64_t *end)
{
    uint64_t top_end = arena->top + arena->top_bytes;

    if (arena->top < start || top_end <= arena->top || !culet_scope_mapped(scope, start, top_end))
        return false;
    *end = top_end;
    return true;
}

/* HEAP_MAX_SIZE: the size for which the heap that has `top` begins with a pointer to its arena, and so does the
 * arena's own. 64 MB unless huge pages were asked for. */
static uint64_t find_heap_max(struct culet_scope *scope, const struct culet_glibc_arena *arena)
{
    static const uint64_t sizes[] = {UINT64_C(64) << 20, UINT64_C(8) << 20, UINT64_C(32) << 20, UINT64_C(128) << 20,
                                     UINT64_C(4) << 30, UINT64_C(1) << 20, UINT64_C(2) << 30};
    uint64_t one, other;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (culet_memory_word(&scope->memory, arena->top & ~(sizes[i] - 1), &one) &&
            culet_memory_word(&scope->memory, arena->address & ~(sizes[i] - 1), &other) &&
            one == arena->address && other == arena->address && (arena->address & (sizes[i] - 1)) < 0x100)
            return sizes[i];
    return 0;
}

size_t culet_glibc_heaps(struct culet_scope *scope, struct culet_glibc *heap, struct culet_glibc_arena *arena,
                         uint64_t *heaps, size_t room)
{
    size_t count = 0;
    struct culet_lap lap = {0};
    uint64_t at, owner;

    if (!heap->heap_max)
        heap->heap_max = find_heap_max(scope, arena);
    if (!heap->heap_max || !arena->top) {
        culet_glibc_break(arena, "its heaps were not found");
        return 0;
    }
    at = arena->top & ~(heap->heap_max - 1);
    while (at && count < room) {
        if (at & (heap->heap_max - 1) || !culet_memory_word(&scope->memory, at, &owner) || owner != arena->address) {
            culet_glibc_break(arena, "its heap at 0x%llx does not belong to it", (unsigned long long)at);
            break;
        }
        if (culet_lap_closes(&lap, at)) {
            culet_glibc_break(arena, "its heaps form a ring");
            break;
        }
        heaps[count++] = at;
        if (!culet_memory_word(&scope->memory, at + 8, &at))
            break;
    }
    return count;
}

uint64_t culet_glibc_first_chunk(const struct culet_glibc *heap, const struct culet_glibc_arena *arena, uint64_t start)
{
    /* struct heap_info is what lies before the arena in its own heap. */
    uint64_t header = arena->address & (heap->heap_max - 1);

    if (start + header != arena->address)
        return start + header;
    /* Behind the arena, so that the block (16 bytes on) is aligned. */
    return ((arena->address + heap->top_at + TOP_END + 31) & ~UINT64_C(15)) - 16;
}

uint64_t culet_glibc_heap_bytes(struct culet_scope *scope, const struct culet_glibc *heap,
                                const struct culet_glibc_arena *arena, uint64_t start)
{
    uint64_t owner, bytes;

    if (!culet_memory_word(&scope->memory, start, &owner) || owner != arena->address ||
        !culet_memory_word(&scope->memory, start + 16, &bytes))
        return 0;
    return bytes <= heap->heap_max && bytes % 8 == 0 && culet_scope_mapped(scope, start, start + bytes) ? bytes : 0;
}

uint64_t culet_glibc_parameters(struct culet_scope *scope, struct culet_glibc *heap)
{
    uint64_t counts, base;

    if (!heap->sbrk_field || !culet_memory_word(&scope->memory, heap->sbrk_field - heap->counts_before, &counts) ||
        !culet_memory_word(&scope->memory, heap->sbrk_field - 16, &heap->mmapped_bytes) ||
        !culet_memory_word(&scope->memory, heap->sbrk_field, &base))
        return 0;
    heap->n_mmaps = counts & UINT32_MAX;
    return base;
}
