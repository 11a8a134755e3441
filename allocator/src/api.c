/* api.c - libc's allocation functions: the fast paths, and what the standards require at the edges. */
#define _GNU_SOURCE
#include "culet.h"

#include "arena.h"
#include "bin.h"
#include "checked.h"
#include "empty_block.h"
#include "harden.h"
#include "heap.h"
#include "housekeeping.h"
#include "large.h"
#include "libc.h"
#include "misuse.h"
#include "os.h"
#include "pagemap.h"
#include "profile_file.h"
#include "profiler.h"
#include "program.h"
#include "purge.h"
#include "sampling.h"
#include "slab.h"
#include "stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define API(name) CULET_NAME(name)

/* The largest object size (C11 6.5.6p9), as in glibc. */
#define BYTES_MAX ((size_t)PTRDIFF_MAX)

static void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

/* ---- allocation ---- */

/* What to add to a size class for calloc: the distance to its own set of classes. */
static inline unsigned calloc_set(void)
{
    return culet_wakeup_heap_large() ? CULET_SIZES : 0;
}

/* The return address. In a function that an allocation function calls last, so that the call is a jump, it is that
 * function's caller; passing it as an argument would cost the fast paths an instruction. */
#define CALLER() __builtin_extract_return_addr(__builtin_return_address(0))

/* For at most CULET_TINY_MAX bytes; 0 for none. */
static inline unsigned tiny_class(size_t bytes)
{
    return (unsigned)((bytes + CULET_ALIGNMENT - 1) / CULET_ALIGNMENT);
}

static void *get_small(unsigned klass)
{
    struct culet_arena *arena = culet_arena_enter();
    void *block = culet_bin_get(arena, klass);

    culet_arena_leave(arena);
    return block;
}

/* A sample of the profile in place of a block of the class; NULL if none is due, or when out of memory. */
static __attribute__((noinline)) void *get_sample(unsigned klass, size_t alignment, bool *zeroed)
{
    struct culet_arena *arena = culet_arena_enter();
    bool due = culet_bin_due(arena, klass);

    culet_arena_leave(arena);
    return due && culet_sampling_allowed() ? culet_sampling_get(culet_classes[klass].size, alignment, zeroed) : NULL;
}

static void *get_unchecked(size_t bytes, size_t alignment, bool *zeroed)
{
    bool unused, *set = zeroed ? zeroed : &unused;
    unsigned klass = 0;
    void *sample;

    if (alignment <= CULET_ALIGNMENT)
        klass = bytes <= CULET_SMALL_MAX ? culet_size_class(bytes) : 0;
    else
        klass = culet_size_class_aligned(bytes, alignment);
    if (!klass)
        return culet_sampling_get_large(bytes ? bytes : 1, alignment, set);
    if (zeroed)
        klass += calloc_set();
    if (culet_bin_profiled() && (sample = get_sample(klass, alignment, set)))
        return sample;
    return get_small(klass);
}

/* A block of a hardened process. */
static __attribute__((noinline)) void *get_checked(size_t bytes, size_t alignment, bool *zeroed)
{
    bool unused;

    return culet_checked_get(bytes, alignment, zeroed ? zeroed : &unused);
}

/* A block of no bytes; NULL where the request is to get another one. */
static __attribute__((noinline)) void *get_empty(size_t alignment)
{
    if (alignment > CULET_ALIGNMENT)
        return NULL;
    /* The fast path has entered. */
    culet_arena_leave_held(&culet_thread);
    return culet_empty_block_get();
}

/* `zeroed`: NULL, or set if the block reads as zeros. */
static inline void *attempt(size_t bytes, size_t alignment, bool *zeroed)
{
    void *empty;

    if (CULET_UNLIKELY(!bytes) && (empty = get_empty(alignment)))
        return empty;
    return CULET_UNLIKELY(culet_harden_level) ? get_checked(bytes, alignment, zeroed)
                                              : get_unchecked(bytes, alignment, zeroed);
}

/* Memory is out, but a purge in progress or slabs without a live block may have some. */
static __attribute__((noinline)) void *attempt_again(size_t bytes, size_t alignment, bool *zeroed)
{
    return culet_purge_free_slabs() ? attempt(bytes, alignment, zeroed) : NULL;
}

/* A block of an active heap. calloc passes `zeroed` (otherwise NULL), which is set if the block reads as zeros.
 * `caller`: the return address of the allocation function. */
static void *get(size_t bytes, size_t alignment, bool *zeroed, const void *caller)
{
    void *block = NULL;

    if (CULET_LIKELY(bytes <= BYTES_MAX)) {
        block = attempt(bytes, alignment, zeroed);
        if (CULET_UNLIKELY(!block))
            block = attempt_again(bytes, alignment, zeroed);
    }
    culet_housekeeping(caller);
    return block ? block : out_of_memory();
}

static void *get_from(size_t bytes, const void *caller)
{
    return culet_heap_dormant() ? culet_libc_malloc(bytes) : get(bytes, CULET_ALIGNMENT, NULL, caller);
}

static __attribute__((noinline)) void *malloc_slow(size_t bytes)
{
    return get_from(bytes, CALLER());
}

/* A block while the current unit has no free one, or the thread holds no arena: from a recent unit, or by the slow
 * path. The thread is inside, and leaves. */
static __attribute__((noinline)) void *malloc_refill(size_t bytes, struct culet_arena *arena)
{
    unsigned klass = bytes <= CULET_TINY_MAX ? tiny_class(bytes) : culet_size_class_above_tiny(bytes);
    void *block = culet_bin_profiled() ? culet_bin_claim(arena, klass) : culet_bin_take_recent(arena, klass);

    if (CULET_UNLIKELY(!block))
        return malloc_slow(bytes);
    culet_arena_leave_held(&culet_thread);
    return block;
}

/* Enters, and takes a block of `size` bytes from a current unit. The arena is passed along: inside, the thread's own word
 * may read as &culet_arena_none while another thread tries to take the arena over. `offset`: of the class's current unit
 * in the arena. `size`: of its blocks if `tiny`. */
static inline __attribute__((always_inline)) void *malloc_small(size_t bytes, size_t offset, bool tiny, uint32_t size)
{
    struct culet_thread *thread = &culet_thread;
    struct culet_arena *arena = culet_arena_enter_held(thread);
    struct culet_current *current = (struct culet_current *)((uintptr_t)arena->current + offset);
    uint64_t free = atomic_load_explicit(&current->unit->free, memory_order_relaxed);

    if (CULET_UNLIKELY(!free))
        return malloc_refill(bytes, arena);
    uintptr_t block = current->base + culet_unit_take(current->unit, free) * (tiny ? size : (uint32_t)current->size);
    culet_arena_leave_held(thread);
    return (void *)block;
}

static __attribute__((noinline)) void *malloc_above_tiny(size_t bytes)
{
    if (CULET_UNLIKELY(bytes > CULET_SMALL_MAX))
        return malloc_slow(bytes);
    return malloc_small(bytes, culet_size_class_above_tiny(bytes) * sizeof(struct culet_current), false, 0);
}

/* A tiny class is a multiple of the alignment. Class 0, for no bytes, has no current unit. */
void *API(malloc)(size_t bytes)
{
    if (CULET_UNLIKELY(bytes > CULET_TINY_MAX))
        return malloc_above_tiny(bytes);
    size_t size = (bytes + CULET_ALIGNMENT - 1) & ~(size_t)(CULET_ALIGNMENT - 1);
    return malloc_small(bytes, size * (sizeof(struct culet_current) / CULET_ALIGNMENT), true, (uint32_t)size);
}

/* A block for calloc while the profile runs, which may be dirty; NULL if none is free, or if a sample may be due.
 * Enters again, so the arena may be another one than the fast path's. */
static __attribute__((noinline)) void *calloc_claim(size_t bytes)
{
    struct culet_arena *arena = culet_arena_enter();
    unsigned klass = culet_size_class(bytes) + calloc_set();
    void *block = culet_bin_take(arena, klass);

    if (!block)
        block = culet_bin_claim(arena, klass);
    culet_arena_leave(arena);
    return block;
}

static __attribute__((noinline)) void *calloc_slow(size_t bytes)
{
    bool zeroed = false;
    void *block;

    if (CULET_UNLIKELY(culet_heap_dormant()))
        return culet_libc_calloc(1, bytes);
    if (culet_bin_profiled() && !culet_harden_level && bytes <= CULET_SMALL_MAX && (block = calloc_claim(bytes)))
        return memset(block, 0, bytes);
    block = get(bytes, CULET_ALIGNMENT, &zeroed, CALLER());
    if (block && !zeroed && bytes > CULET_HUGE_CLEAR_BYTES)
        culet_os_clear((uintptr_t)block, bytes);
    else if (block && !zeroed)
        memset(block, 0, bytes);
    return block;
}

void *API(calloc)(size_t count, size_t bytes)
{
    size_t total;

    if (CULET_UNLIKELY(__builtin_mul_overflow(count, bytes, &total)))
        return out_of_memory();
    if (CULET_UNLIKELY(total > CULET_SMALL_MAX))
        return calloc_slow(total);
    unsigned klass = total <= CULET_TINY_MAX ? tiny_class(total) : culet_size_class_above_tiny(total);
    struct culet_arena *arena = culet_arena_enter_held(&culet_thread);
    void *block = CULET_LIKELY(klass) ? culet_bin_take(arena, klass + calloc_set()) : NULL;
    if (CULET_UNLIKELY(!block))
        return calloc_slow(total);
    culet_arena_leave_held(&culet_thread);
    return memset(block, 0, total);
}

/* ---- free ---- */

static void free_checked(const char *function, struct culet_slab *slab, void *block);

/* Not a block of a slab, or one of a hardened process. The thread is inside. */
static __attribute__((noinline)) void free_not_slab(void *block, const char *function, uintptr_t entry)
{
    struct culet_span *span = culet_entry_span(entry);

    culet_arena_leave_held(&culet_thread);
    if (!block || (culet_empty_block_contains(block) && culet_empty_block_put(block)))
        return;
    if (!span && culet_heap_dormant())
        culet_libc_free(block);
    else if (span && culet_abandoned())
        return;
    else if (culet_entry_is_checked_slab(entry))
        free_checked(function, (struct culet_slab *)span, block);
    else if (!span || !culet_large_put(span, (uintptr_t)block))
        culet_misuse(function, (uintptr_t)block);
}

/* Each rare case of a free is a call at its end, with everything in registers, so that the common path saves none. */

/* So that the calls of a report are jumps too: the compiler does not learn that they do not return. */
#if defined(__has_attribute) && __has_attribute(noipa)
#define REPORT static __attribute__((noipa))
#else
#define REPORT static __attribute__((noinline))
#endif

REPORT void report(void *block, const char *function)
{
    culet_arena_leave_held(&culet_thread);
    culet_misuse(function, (uintptr_t)block);
}

/* Inside the arena, which a thread that does not keep it releases. */
REPORT void leave_and_report(const char *function, const struct culet_slab *slab, size_t index,
                             struct culet_arena *arena)
{
    culet_arena_leave(arena);
    culet_misuse(function, culet_slab_address(slab, index));
}

/* Records that the block's unit was full before a free, or has no live block now; and leaves the arena. */
static __attribute__((noinline)) void note_and_leave(struct culet_slab *slab, size_t index, struct culet_arena *arena)
{
    culet_bin_unit_changed(arena, atomic_load_explicit(&slab->span.klass, memory_order_relaxed), slab,
                           culet_block_unit(index));
    culet_arena_leave(arena);
}

/* Leaves an arena that the thread keeps, after a free in a unit that was full before (`before`, its free word, is 0)
 * or has no live block now (`unused`, its blocks that are not live, is all of it). */
static __attribute__((noinline)) void note_and_leave_held(struct culet_slab *slab, size_t index,
                                                          struct culet_arena *arena, uint64_t before, uint64_t unused)
{
    unsigned klass = atomic_load_explicit(&slab->span.klass, memory_order_relaxed);

    if (culet_bin_note_free(arena, klass, slab, culet_block_unit(index), before, unused))
        culet_arena_leave_held(&culet_thread);
    else
        note_and_leave(slab, index, arena);
}

/* Inside the slab's arena. `keeps`: the thread certainly keeps the arena when it leaves. */
static inline __attribute__((always_inline)) void free_inside(const char *function, struct culet_slab *slab,
                                                              size_t index, struct culet_arena *arena, bool keeps)
{
    uint64_t before, unused;

    if (CULET_UNLIKELY(!culet_unit_put(culet_slab_unit(slab, index), index, &before, &unused)))
        leave_and_report(function, slab, index, arena);
    else if (!keeps)
        note_and_leave(slab, index, arena);
    else if (CULET_UNLIKELY(!before || !~unused))
        note_and_leave_held(slab, index, arena, before, unused);
    else
        culet_arena_leave_held(&culet_thread);
}

/* The thread, which is inside, holds another arena than the slab's, or none. */
static __attribute__((noinline)) void free_elsewhere(const char *function, struct culet_slab *slab, size_t index,
                                                     struct culet_arena *arena)
{
    bool done;

    if (arena != &culet_arena_none || culet_abandoned()) {
        culet_arena_leave_held(&culet_thread);
        done = culet_bin_free_remote(slab, index);
    } else {
        arena = culet_arena_enter();
        if (arena->number == atomic_load_explicit(&slab->span.arena, memory_order_relaxed)) {
            free_inside(function, slab, index, arena, false);
            return;
        }
        /* Inside, since a fork waits for no thread that is about to end. */
        done = culet_bin_free_remote(slab, index);
        culet_arena_leave(arena);
    }
    if (CULET_UNLIKELY(!done))
        culet_misuse(function, culet_slab_address(slab, index));
}

static void free_now(const char *function, void *block)
{
    struct culet_slab *slab = (struct culet_slab *)culet_pagemap_span((uintptr_t)block);

    free_elsewhere(function, slab, culet_slab_index(slab, (uintptr_t)block).block, &culet_arena_none);
}

/* In a hardened process: what the quarantine has no room for goes back to its slab. */
static void free_checked(const char *function, struct culet_slab *slab, void *block)
{
    if ((block = culet_checked_put(function, slab, block)))
        free_now(function, block);
    while ((block = culet_checked_evict()))
        free_now(function, block);
}

/* Not freed at once: a block of a large heap, or none of the thread's arena. The thread is inside. A deferred free needs
 * the entry only, not the slab's head. */
static __attribute__((noinline)) void free_other(const char *function, void *block, uintptr_t entry,
                                                 struct culet_arena *arena)
{
    struct culet_slab *slab = culet_entry_slab(entry);
    bool deferred = (uint8_t)entry == arena->deferred_tag;
    struct culet_block_index index;

    if (CULET_UNLIKELY(!culet_entry_is_slab(entry))) {
        free_not_slab(block, function, entry);
        return;
    }
    index = deferred ? culet_entry_index(entry, (uintptr_t)block) : culet_slab_index(slab, (uintptr_t)block);
    if (CULET_UNLIKELY(!index.exact)) {
        report(block, function);
    } else if (CULET_LIKELY(deferred)) {
        culet_bin_defer_free(arena, culet_slab_unit(slab, index.block), block);
        culet_arena_leave_held(&culet_thread);
    } else {
        free_elsewhere(function, slab, index.block, arena);
    }
}

/* Entered first: from there on nobody else creates, moves or destroys a slab of the thread's arena, so an entry with the
 * arena's tag is that of such a slab until the thread leaves. */
static inline __attribute__((always_inline)) void free_block(const char *function, void *block)
{
    struct culet_arena *arena = culet_arena_enter_held(&culet_thread);
    uintptr_t entry = culet_pagemap_entry((uintptr_t)block);
    if (CULET_UNLIKELY((uint8_t)entry != arena->tag)) {
        free_other(function, block, entry, arena);
        return;
    }
    struct culet_slab *slab = culet_entry_slab(entry);
    struct culet_block_index index = culet_slab_index(slab, (uintptr_t)block);
    if (CULET_UNLIKELY(!index.exact))
        report(block, function);
    else
        free_inside(function, slab, index.block, arena, true);
}

/* NULL is in no slab. */
void API(free)(void *block)
{
    free_block("free", block);
}

static __attribute__((noinline)) void free_as(const char *function, void *block)
{
    free_block(function, block);
}

/* ---- usable size, realloc ---- */

/* Usable bytes of a large or huge block; a misuse unless it is live. */
static __attribute__((noinline)) size_t usable_not_slab(const char *function, void *block, uintptr_t entry)
{
    struct culet_span *span = culet_entry_span(entry);

    if (culet_entry_is_checked_slab(entry))
        return culet_checked_usable(function, (struct culet_slab *)span, block);
    if (culet_empty_block_contains(block) && culet_empty_block_is_live(block))
        return 0;
    if (!span || span->start != (uintptr_t)block)
        culet_misuse(function, (uintptr_t)block);
    return culet_large_bytes(span);
}

/* Usable bytes of a live block; anything else is a misuse. `entry`: of the pagemap. */
static inline size_t usable(const char *function, void *block, uintptr_t entry)
{
    if (CULET_UNLIKELY(!culet_entry_is_slab(entry)))
        return usable_not_slab(function, block, entry);
    const struct culet_slab *slab = culet_entry_slab(entry);
    struct culet_block_index index = culet_slab_index(slab, (uintptr_t)block);
    if (CULET_UNLIKELY(!index.exact || !culet_slab_is_live(slab, index.block)))
        culet_misuse(function, (uintptr_t)block);
    return slab->usable;
}

static __attribute__((noinline)) size_t usable_size_not_slab(void *block, uintptr_t entry)
{
    if (!culet_entry_span(entry) && !culet_empty_block_contains(block) && culet_heap_dormant())
        return culet_libc_malloc_usable_size(block);
    return usable_not_slab("malloc_usable_size", block, entry);
}

size_t API(malloc_usable_size)(void *block)
{
    if (!block)
        return 0;
    uintptr_t entry = culet_pagemap_entry((uintptr_t)block);
    if (CULET_UNLIKELY(!culet_entry_is_slab(entry)))
        return usable_size_not_slab(block, entry);
    return usable("malloc_usable_size", block, entry);
}

/* A block was kept although it should have shrunk: any size that is not too large may be right from now on. */
static _Atomic bool shrink_failed;

static void *move(void *block, size_t usable_bytes, size_t bytes, const void *caller)
{
    void *moved = get_from(bytes, caller);

    if (!moved) {
        /* Shrinking is optional: keep the block. */
        if (bytes > usable_bytes)
            return NULL;
        atomic_store_explicit(&shrink_failed, true, memory_order_relaxed);
        return block;
    }
    memcpy(moved, block, bytes < usable_bytes ? bytes : usable_bytes);
    free_as("realloc", block);
    return moved;
}

/* In a hardened process, of a slab's block or one of no bytes; NULL unless it stays in place. */
static void *resize_checked(void *block, size_t bytes, const struct culet_slab *slab)
{
    return slab && culet_checked_resize(slab, block, bytes) ? block : NULL;
}

static void *resize_large(struct culet_span *span, void *block, size_t bytes, size_t usable_bytes)
{
    void *resized = culet_large_resize(span, bytes);

    if (resized)
        culet_sampling_resized(span, block, usable_bytes);
    return resized;
}

/* For blocks that do not stay as they are. */
static __attribute__((noinline)) void *resize(void *block, size_t bytes, uintptr_t entry)
{
    struct culet_span *span = culet_entry_span(entry);
    if (CULET_UNLIKELY(!span) && !culet_empty_block_contains(block) && culet_heap_dormant())
        return culet_libc_realloc(block, bytes);

    size_t usable_bytes = usable("realloc", block, entry);
    if (bytes == 0) {
        free_as("realloc", block);
        return NULL;
    }
    if (CULET_UNLIKELY(bytes > BYTES_MAX))
        return out_of_memory();
    if (!culet_entry_is_slab(entry) && !culet_abandoned()) {
        void *resized = culet_entry_is_checked_slab(entry) || !span
                            ? resize_checked(block, bytes, (struct culet_slab *)span)
                            : resize_large(span, block, bytes, usable_bytes);
        if (resized)
            return resized;
    }
    return move(block, usable_bytes, bytes, CALLER());
}

void *API(realloc)(void *block, size_t bytes)
{
    if (!block)
        return API(malloc)(bytes);

    uintptr_t entry = culet_pagemap_entry((uintptr_t)block);
    if (CULET_LIKELY(culet_entry_is_slab(entry) && bytes) && culet_size_stays(bytes, usable("realloc", block, entry)))
        return block;
    return resize(block, bytes, entry);
}

void *API(reallocarray)(void *block, size_t count, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count, bytes, &total))
        return out_of_memory();
    return API(realloc)(block, total);
}

/* ---- aligned ---- */

static bool power_of_two(size_t n)
{
    return n && !(n & (n - 1));
}

/* Aligned memory for an alignment that is a power of two. */
static void *aligned(size_t alignment, size_t bytes, const void *caller)
{
    return culet_heap_dormant() ? culet_libc_memalign(alignment, bytes) : get(bytes, alignment, NULL, caller);
}

/* Rounds an alignment that is not a power of two up, as glibc does. */
void *API(memalign)(size_t alignment, size_t bytes)
{
    size_t power = CULET_ALIGNMENT;

    if (alignment > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    while (power < alignment)
        power *= 2;
    return aligned(power, bytes, CALLER());
}

int API(posix_memalign)(void **block, size_t alignment, size_t bytes)
{
    int saved = errno;

    if (!power_of_two(alignment) || alignment % sizeof(void *))
        return EINVAL;
    void *got = aligned(alignment, bytes, CALLER());
    errno = saved;
    if (!got)
        return ENOMEM;
    *block = got;
    return 0;
}

void *API(aligned_alloc)(size_t alignment, size_t bytes)
{
    if (!power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    return aligned(alignment, bytes, CALLER());
}

void *API(valloc)(size_t bytes)
{
    return aligned(culet_os_page_bytes(), bytes, CALLER());
}

void *API(pvalloc)(size_t bytes)
{
    size_t page = culet_os_page_bytes();

    if (bytes > BYTES_MAX - page)
        return out_of_memory();
    return aligned(page, bytes ? (bytes + page - 1) & ~(page - 1) : page, CALLER());
}

/* ---- C23 ---- */

/* Whether a block of so many usable bytes can have been requested with this size and alignment: by an allocation, or by a
 * realloc that left it in place. */
static bool size_fits(size_t bytes, size_t alignment, size_t usable_bytes)
{
    if (culet_size_stays(bytes, usable_bytes))
        return true;
    if (bytes > usable_bytes)
        return false;
    if (atomic_load_explicit(&shrink_failed, memory_order_relaxed))
        return true;
    if (alignment <= CULET_ALIGNMENT)
        return false;
    unsigned klass = culet_size_class_aligned(bytes, alignment);
    return klass ? culet_classes[klass].size == usable_bytes
                 : usable_bytes - (bytes ? bytes : 1) < culet_os_page_bytes();
}

/* Not one of libc's, in a dormant process. */
static bool active_or_ours(const void *block)
{
    return culet_pagemap_span((uintptr_t)block) || !culet_heap_dormant();
}

/* No block of a slab, or one that does not stay at this size in realloc: reported, unless it is due to its alignment or to
 * a failed shrink. A hardened process knows the requested size. What is no live block is a misuse. */
static __attribute__((noinline)) void check_size(const char *function, void *block, size_t bytes, size_t alignment)
{
    if (!active_or_ours(block))
        return;
    uintptr_t entry = culet_pagemap_entry((uintptr_t)block);
    size_t usable_bytes = usable(function, block, entry);
    bool exact = culet_harden_level >= CULET_HARDEN_CANARIES && culet_entry_is_checked_slab(entry) &&
                 !atomic_load_explicit(&shrink_failed, memory_order_relaxed);
    if (exact ? bytes != usable_bytes : !size_fits(bytes, alignment, usable_bytes))
        culet_misuse_size(function, (uintptr_t)block, bytes, usable_bytes);
}

/* A block that lacks the alignment it is freed with; a misuse unless it is live. Returns the one to check its size with. */
static __attribute__((noinline)) size_t wrong_alignment(void *block, size_t alignment)
{
    if (active_or_ours(block)) {
        usable("free_aligned_sized", block, culet_pagemap_entry((uintptr_t)block));
        culet_misuse_alignment("free_aligned_sized", (uintptr_t)block, alignment);
    }
    return CULET_ALIGNMENT;
}

static inline __attribute__((always_inline)) void free_sized_block(const char *function, void *block, size_t bytes,
                                                                   size_t alignment)
{
    uintptr_t entry = culet_pagemap_entry((uintptr_t)block);

    if (CULET_UNLIKELY(!culet_entry_is_slab(entry) || !culet_size_stays(bytes, culet_entry_slab(entry)->usable)))
        check_size(function, block, bytes, alignment);
    free_block(function, block);
}

void API(free_sized)(void *block, size_t bytes)
{
    if (CULET_LIKELY(block != NULL))
        free_sized_block("free_sized", block, bytes, CULET_ALIGNMENT);
}

void API(free_aligned_sized)(void *block, size_t alignment, size_t bytes)
{
    if (CULET_UNLIKELY(!block))
        return;
    if (CULET_UNLIKELY(!power_of_two(alignment) || (uintptr_t)block & (alignment - 1)))
        alignment = wrong_alignment(block, alignment);
    free_sized_block("free_aligned_sized", block, bytes, alignment);
}

/* ---- culet's own ---- */

const char *culet_version(void)
{
    return CULET_VERSION;
}

int culet_active(void)
{
    return !culet_heap_dormant();
}

#ifndef CULET_PREFIXED
/* Linked with -z initfirst: the heap is set up, and its fork handlers registered, before any other library's
 * constructor can register one. */
__attribute__((constructor)) static void loaded(void)
{
    culet_stack_setup();
    if (culet_heap_dormant())
        return;
    culet_program_report();
    culet_profiler_setup();
}

/* At the end of the process: misuses among the deferred frees are reported. */
static void finish_frees(void)
{
    if (culet_heap_dormant() || culet_abandoned())
        return;
    struct culet_arena *arena = culet_arena_enter();
    culet_bin_finish_frees(arena);
    culet_arena_leave(arena);
}

__attribute__((destructor)) static void unloaded(void)
{
    finish_frees();
    culet_profile_file_end();
    culet_checked_at_exit();
}
#elif defined(CULET_TEST)
/* Tests of other parts run with the profile on, too. */
__attribute__((constructor)) static void loaded(void)
{
    if (getenv("CULET_PROFILE") && !culet_heap_dormant())
        culet_profiler_setup();
}
#endif
