/* api.c - libc's allocation functions: the fast paths, and what the standards require at the edges. */
#define _GNU_SOURCE
#include "culet.h"

#include "arena.h"
#include "bin.h"
#include "heap.h"
#include "large.h"
#include "libc.h"
#include "misuse.h"
#include "os.h"
#include "pagemap.h"
#include "purge.h"
#include "scavenger.h"
#include "slab.h"
#include "stack.h"

#include <errno.h>
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

static void *get_small(unsigned klass)
{
    struct culet_arena *arena = culet_arena_enter();
    void *block = culet_bin_get(arena, klass);

    culet_arena_leave(arena);
    return block;
}

/* A block of an active heap. calloc passes `zeroed` (otherwise NULL), which is set if the block reads as zeros.
 * `caller`: the return address of the allocation function. */
static void *get(size_t bytes, size_t alignment, bool *zeroed, const void *caller)
{
    bool unused;
    unsigned klass = 0;
    void *block;

    if (alignment <= CULET_ALIGNMENT)
        klass = bytes <= CULET_SMALL_MAX ? culet_size_class(bytes) : 0;
    else
        klass = culet_size_class_aligned(bytes, alignment);
    if (klass) {
        block = get_small(zeroed ? klass + calloc_set() : klass);
    } else if (bytes <= BYTES_MAX) {
        block = culet_large_get(bytes ? bytes : 1, alignment, zeroed ? zeroed : &unused);
    } else {
        block = NULL;
    }
    culet_scavenger_check(caller);
    culet_stack_check();
    culet_purge_small_heap();
    culet_purge_on_growth();
    return block ? block : out_of_memory();
}

static void *get_from(size_t bytes, const void *caller)
{
    return culet_heap_dormant() ? __libc_malloc(bytes) : get(bytes, CULET_ALIGNMENT, NULL, caller);
}

static __attribute__((noinline)) void *malloc_slow(size_t bytes)
{
    return get_from(bytes, CALLER());
}

/* A block of the class's current unit; NULL if it has none, or if the thread holds no arena. The thread is inside then,
 * and the slow path goes on from there. Stores the arena: inside, the thread's own word may read as &culet_arena_none
 * while another thread tries to take the arena over. */
static inline __attribute__((always_inline)) void *get_current(unsigned klass, struct culet_arena **arena)
{
    struct culet_thread *thread = &culet_thread;

    *arena = culet_arena_enter_held(thread);
    void *block = culet_bin_take(*arena, klass);
    if (CULET_LIKELY(block != NULL))
        culet_arena_leave_held(thread);
    return block;
}

/* For at most CULET_TINY_MAX bytes. Class 0, for no bytes, has no current unit. */
static inline unsigned tiny_class(size_t bytes)
{
    return (unsigned)((bytes + CULET_ALIGNMENT - 1) / CULET_ALIGNMENT);
}

/* The current unit has no free block, or the thread holds no arena: from a recent unit, or by the slow path. */
static __attribute__((noinline)) void *malloc_refill(size_t bytes, unsigned klass, struct culet_arena *arena)
{
    void *block = culet_bin_take_recent(arena, klass);

    if (CULET_UNLIKELY(!block))
        return malloc_slow(bytes);
    culet_arena_leave_held(&culet_thread);
    return block;
}

static __attribute__((noinline)) void *malloc_above_tiny(size_t bytes)
{
    struct culet_arena *arena;

    if (CULET_UNLIKELY(bytes > CULET_SMALL_MAX))
        return malloc_slow(bytes);
    unsigned klass = culet_size_class_above_tiny(bytes);
    void *block = get_current(klass, &arena);
    return CULET_LIKELY(block != NULL) ? block : malloc_refill(bytes, klass, arena);
}

void *API(malloc)(size_t bytes)
{
    struct culet_arena *arena;

    if (CULET_UNLIKELY(bytes > CULET_TINY_MAX))
        return malloc_above_tiny(bytes);
    unsigned klass = tiny_class(bytes);
    void *block = get_current(klass, &arena);
    return CULET_LIKELY(block != NULL) ? block : malloc_refill(bytes, klass, arena);
}

static __attribute__((noinline)) void *calloc_slow(size_t bytes)
{
    bool zeroed = false;

    if (CULET_UNLIKELY(culet_heap_dormant()))
        return __libc_calloc(1, bytes);
    void *block = get(bytes, CULET_ALIGNMENT, &zeroed, CALLER());
    if (block && !zeroed)
        memset(block, 0, bytes);
    return block;
}

void *API(calloc)(size_t count, size_t bytes)
{
    struct culet_arena *arena;
    size_t total;
    void *block;

    if (CULET_UNLIKELY(__builtin_mul_overflow(count, bytes, &total)))
        return out_of_memory();
    unsigned klass = total <= CULET_TINY_MAX    ? tiny_class(total)
                     : total <= CULET_SMALL_MAX ? culet_size_class_above_tiny(total)
                                                : 0;
    if (CULET_LIKELY(klass && (block = get_current(klass + calloc_set(), &arena))))
        return memset(block, 0, total);
    return calloc_slow(total);
}

/* ---- free ---- */

static __attribute__((noinline)) void free_not_slab(const char *function, void *block)
{
    struct culet_span *span = culet_pagemap_span((uintptr_t)block);

    if (!span && culet_heap_dormant())
        __libc_free(block);
    else if (span && culet_abandoned())
        return;
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

REPORT void report(const char *function, void *block)
{
    culet_misuse(function, (uintptr_t)block);
}

/* Inside the arena. */
REPORT void leave_and_report(const char *function, void *block, struct culet_arena *arena)
{
    culet_arena_leave(arena);
    culet_misuse(function, (uintptr_t)block);
}

/* No block of the unit is live now, or the recent units are too many. Inside the arena. */
static __attribute__((noinline)) void note_and_leave(struct culet_slab *slab, uint32_t index, struct culet_arena *arena)
{
    culet_bin_unit_changed(arena, atomic_load_explicit(&slab->span.klass, memory_order_relaxed), slab,
                           culet_block_unit(index));
    culet_arena_leave(arena);
}

/* No block of the unit is live now. Inside the arena, which the thread keeps. */
static __attribute__((noinline)) void note_unused_and_leave(struct culet_slab *slab, uint32_t index,
                                                            struct culet_arena *arena)
{
    if (culet_bin_keeps_current(arena, slab))
        culet_arena_leave_held(&culet_thread);
    else
        note_and_leave(slab, index, arena);
}

/* The unit was full. Inside the arena, which the thread keeps. */
static __attribute__((noinline)) void note_free_and_leave(struct culet_slab *slab, uint32_t index,
                                                          struct culet_arena *arena)
{
    if (CULET_UNLIKELY(!culet_bin_add_recent(arena, slab, culet_block_unit(index))))
        note_and_leave(slab, index, arena);
    else
        culet_arena_leave_held(&culet_thread);
}

/* In the slab's last unit, which is shorter. Inside the slab's arena. */
static __attribute__((noinline)) void free_in_short_unit(struct culet_slab *slab, uint32_t index,
                                                         struct culet_arena *arena, void *block, const char *function)
{
    struct culet_unit *unit = &slab->unit[culet_block_unit(index)];
    const struct culet_class *c = culet_slab_class(slab);
    uint64_t before = atomic_load_explicit(&unit->free, memory_order_relaxed);
    uint64_t bit = culet_block_bit(index), after = before | bit;

    if (CULET_UNLIKELY((before | ~c->last_all) & bit)) {
        leave_and_report(function, block, arena);
        return;
    }
    atomic_store_explicit(&unit->free, after, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (CULET_UNLIKELY(atomic_load_explicit(&unit->remote, memory_order_relaxed) & bit)) {
        leave_and_report(function, block, arena);
        return;
    }
    if (CULET_UNLIKELY(after == c->last_all || !before))
        note_and_leave(slab, index, arena);
    else
        culet_arena_leave(arena);
}

/* Inside the slab's arena. A free changes its word first and looks at the other one afterwards: of two threads that free
 * one block at the same moment, at least one sees both, unless a store is still in its processor's buffer. `keeps`: the
 * thread certainly keeps the arena when it leaves. */
static inline __attribute__((always_inline)) void free_inside(struct culet_slab *slab, uint32_t index,
                                                              struct culet_arena *arena, void *block,
                                                              const char *function, bool keeps)
{
    if (CULET_UNLIKELY(index >= slab->whole)) {
        free_in_short_unit(slab, index, arena, block, function);
        return;
    }
    struct culet_unit *unit = &slab->unit[culet_block_unit(index)];
    uint64_t before = atomic_load_explicit(&unit->free, memory_order_relaxed);
    uint64_t bit = culet_block_bit(index), after = before | bit;
    if (CULET_UNLIKELY(before & bit)) {
        leave_and_report(function, block, arena);
        return;
    }
    atomic_store_explicit(&unit->free, after, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (CULET_UNLIKELY(atomic_load_explicit(&unit->remote, memory_order_relaxed) & bit)) {
        leave_and_report(function, block, arena);
        return;
    }
    if (!keeps)
        note_and_leave(slab, index, arena);
    else if (CULET_UNLIKELY(!~after))
        note_unused_and_leave(slab, index, arena);
    else if (CULET_UNLIKELY(!before))
        note_free_and_leave(slab, index, arena);
    else
        culet_arena_leave_held(&culet_thread);
}

/* The thread, which is inside, holds another arena than the slab's, or none. */
static __attribute__((noinline)) void free_elsewhere(struct culet_slab *slab, uint32_t index, struct culet_arena *arena,
                                                     void *block, const char *function)
{
    if (arena != &culet_arena_none || culet_abandoned()) {
        culet_arena_leave_held(&culet_thread);
    } else {
        arena = culet_arena_enter();
        if (arena->number == atomic_load_explicit(&slab->span.arena, memory_order_relaxed)) {
            free_inside(slab, index, arena, block, function, false);
            return;
        }
        culet_arena_leave(arena);
    }
    if (CULET_UNLIKELY(!culet_bin_free_remote(slab, index)))
        report(function, block);
}

static inline __attribute__((always_inline)) void free_block(const char *function, void *block)
{
    uintptr_t entry = culet_pagemap_entry((uintptr_t)block);
    if (CULET_UNLIKELY(!culet_entry_is_slab(entry))) {
        free_not_slab(function, block);
        return;
    }
    struct culet_slab *slab = culet_entry_slab(entry);
    struct culet_block_index index = culet_slab_index(slab, (uintptr_t)block);
    if (CULET_UNLIKELY(!index.exact)) {
        report(function, block);
        return;
    }
    struct culet_arena *arena = culet_arena_enter_held(&culet_thread);
    if (CULET_UNLIKELY(arena->number != atomic_load_explicit(&slab->span.arena, memory_order_relaxed)))
        free_elsewhere(slab, index.block, arena, block, function);
    else
        free_inside(slab, index.block, arena, block, function, true);
}

void API(free)(void *block)
{
    if (CULET_LIKELY(block != NULL))
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
    return culet_slab_class(slab)->size;
}

static __attribute__((noinline)) size_t usable_size_not_slab(void *block, uintptr_t entry)
{
    if (!culet_entry_span(entry) && culet_heap_dormant())
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

/* A block stays in place while at least three quarters of it are used; small blocks have 16 bytes more. */
static bool stays(size_t bytes, size_t usable_bytes)
{
    return bytes <= usable_bytes && usable_bytes - bytes <= usable_bytes / 4 + CULET_ALIGNMENT;
}

static void *move(void *block, size_t usable_bytes, size_t bytes, const void *caller)
{
    void *moved = get_from(bytes, caller);

    if (!moved) {
        /* Shrinking is optional: keep the block. */
        return bytes <= usable_bytes ? block : NULL;
    }
    memcpy(moved, block, bytes < usable_bytes ? bytes : usable_bytes);
    free_as("realloc", block);
    return moved;
}

/* For blocks that do not stay as they are. */
static __attribute__((noinline)) void *resize(void *block, size_t bytes, uintptr_t entry)
{
    struct culet_span *span = culet_entry_span(entry);
    if (CULET_UNLIKELY(!span) && culet_heap_dormant())
        return __libc_realloc(block, bytes);

    size_t usable_bytes = usable("realloc", block, entry);
    if (bytes == 0) {
        free_as("realloc", block);
        return NULL;
    }
    if (CULET_UNLIKELY(bytes > BYTES_MAX))
        return out_of_memory();
    if (!culet_entry_is_slab(entry) && !culet_abandoned()) {
        void *resized = culet_large_resize(span, bytes);
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
    if (CULET_LIKELY(culet_entry_is_slab(entry) && bytes) && stays(bytes, usable("realloc", block, entry)))
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
    return culet_heap_dormant() ? __libc_memalign(alignment, bytes) : get(bytes, alignment, NULL, caller);
}

/* As in glibc, an alignment that is not a power of two is rounded up to one. */
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

/* A size above the usable bytes is a misuse. A size that is too small cannot be detected: realloc may have kept a block
 * that it should have shrunk. */
static void check_size(const char *function, void *block, size_t bytes)
{
    uintptr_t entry = culet_pagemap_entry((uintptr_t)block);
    if (!culet_entry_span(entry) && culet_heap_dormant())
        return;

    size_t usable_bytes = usable(function, block, entry);
    if (bytes > usable_bytes)
        culet_misuse_size(function, (uintptr_t)block, bytes, usable_bytes);
}

void API(free_sized)(void *block, size_t bytes)
{
    if (!block)
        return;
    check_size("free_sized", block, bytes);
    free_as("free_sized", block);
}

void API(free_aligned_sized)(void *block, size_t alignment, size_t bytes)
{
    (void)alignment;
    if (!block)
        return;
    check_size("free_aligned_sized", block, bytes);
    free_as("free_aligned_sized", block);
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
    culet_heap_dormant();
}
#endif
