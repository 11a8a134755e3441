/* api.c - libc's allocation functions: the fast paths, and what the standards require at the edges. */
#define _GNU_SOURCE
#include "culet.h"

#include "bias.h"
#include "cache.h"
#include "heap.h"
#include "large.h"
#include "libc.h"
#include "misuse.h"
#include "os.h"
#include "pagemap.h"
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
        block = culet_cache_get(zeroed ? klass + calloc_set() : klass);
    } else if (bytes <= BYTES_MAX) {
        block = culet_large_get(bytes ? bytes : 1, alignment, zeroed ? zeroed : &unused);
    } else {
        block = NULL;
    }
    culet_scavenger_check(caller);
    culet_stack_check();
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

/* Takes a block for at most CULET_TINY_MAX bytes out of the thread's claim; false if that is used up. `set`: 0, or
 * calloc_set(). */
static inline bool get_claimed(size_t bytes, unsigned set, void **block)
{
    unsigned klass = culet_size_class(bytes);
    struct culet_claim *claim = &culet_cache->claim[klass + set];
    uint64_t claimed = atomic_load_explicit(claim->word, memory_order_relaxed);

    if (CULET_UNLIKELY(!claimed))
        return false;
    atomic_store_explicit(claim->word, claimed & (claimed - 1), memory_order_relaxed);
    *block = (void *)(claim->base + (size_t)__builtin_ctzll(claimed) * (klass * CULET_ALIGNMENT));
    return true;
}

void *API(malloc)(size_t bytes)
{
    void *block;

    return CULET_LIKELY(bytes <= CULET_TINY_MAX && get_claimed(bytes, 0, &block)) ? block : malloc_slow(bytes);
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
    size_t total;
    void *block;

    if (CULET_UNLIKELY(__builtin_mul_overflow(count, bytes, &total)))
        return out_of_memory();
    if (CULET_LIKELY(total <= CULET_TINY_MAX && get_claimed(total, calloc_set(), &block)))
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

/* Each rare case of a free is a call at its end, with everything in registers, so that the common path saves none.
 * `unit_number`: of the unit in the slab; `block_number`: of the block in the unit. */

/* The unit was full before, or is empty now. For the biased thread, between enter and leave. */
static __attribute__((noinline)) void note_as_biased(unsigned klass, struct culet_slab *slab, unsigned unit_number)
{
    culet_bin_unit_changed(klass, slab, unit_number, true);
    culet_bias_leave(culet_cache);
}

/* The same for any other thread. */
static __attribute__((noinline)) void note_as_shared(unsigned klass, struct culet_slab *slab, unsigned unit_number)
{
    struct culet_cache *cache = culet_cache;

    culet_bin_unit_changed(klass, slab, unit_number, false);
    culet_bias_leave(cache);
    culet_bias_visit(cache);
}

/* Between enter and leave. */
static _Noreturn __attribute__((noinline)) void leave_and_report(const char *function, void *block)
{
    culet_bias_leave(culet_cache);
    culet_misuse(function, (uintptr_t)block);
}

/* A free changes the unit's words first and checks afterwards whether the block was live: if two threads free one block
 * at the same moment and one of them has claimed the unit, they change different words, and at least one sees both
 * changes. */
static inline bool was_live(uint64_t live, uint64_t claimed, unsigned block_number)
{
    return (live & ~claimed) >> block_number & 1;
}

/* After entering, with or without a cache. Once the block is free another thread may claim it, so a bit in `claimed` is
 * not a misuse yet: culet_bin_unit_changed decides under the bin's lock. */
static inline __attribute__((always_inline)) void free_entered(struct culet_cache *cache, bool uncached, unsigned klass,
                                                               struct culet_slab *slab, unsigned unit_number,
                                                               unsigned block_number, void *block, const char *function)
{
    struct culet_unit *unit = &slab->unit[unit_number];
    uint64_t bit = UINT64_C(1) << block_number;
    uint64_t live = atomic_fetch_and_explicit(&unit->live, ~bit, CULET_ORDER_FREE);
    uint64_t claimed = atomic_load_explicit(&unit->claimed, memory_order_relaxed);

    if (CULET_UNLIKELY(!(live & bit)))
        leave_and_report(function, block);
    if (CULET_UNLIKELY(live == culet_class_full(&culet_classes[klass], unit_number) || live == bit || claimed & bit))
        note_as_shared(klass, slab, unit_number);
    else if (uncached)
        culet_bias_leave(cache);
    else
        culet_bias_leave_cached(cache);
}

static __attribute__((noinline)) void free_by_slow_entry(unsigned klass, struct culet_slab *slab, unsigned unit_number,
                                                         unsigned block_number, void *block, const char *function)
{
    culet_bias_enter_slow(culet_cache);
    free_entered(culet_cache, true, klass, slab, unit_number, block_number, block, function);
}

/* For threads that are not biased, after culet_bias_enter_biased. */
static __attribute__((noinline)) void free_shared(unsigned klass, struct culet_slab *slab, unsigned unit_number,
                                                  unsigned block_number, void *block, const char *function)
{
    struct culet_cache *cache = culet_cache;

    if (CULET_UNLIKELY(culet_bias_entry_is_slow(cache)))
        free_by_slow_entry(klass, slab, unit_number, block_number, block, function);
    else
        free_entered(cache, false, klass, slab, unit_number, block_number, block, function);
}

static inline __attribute__((always_inline)) void free_block(const char *function, void *block)
{
    uintptr_t entry = culet_pagemap_entry((uintptr_t)block);
    unsigned klass = culet_entry_class(entry);
    if (CULET_UNLIKELY(!klass)) {
        free_not_slab(function, block);
        return;
    }

    const struct culet_class *c = &culet_classes[klass];
    struct culet_slab *slab = culet_entry_slab(entry);
    struct culet_block_index index = culet_slab_index(c, culet_entry_offset(entry, (uintptr_t)block));
    if (CULET_UNLIKELY(!index.exact)) {
        culet_misuse(function, (uintptr_t)block);
        return;
    }

    struct culet_cache *cache = culet_cache;
    struct culet_unit *unit = &slab->unit[index.unit];
    if (cache->claim[klass].word == &unit->claimed) {
        uint64_t claimed = atomic_load_explicit(&unit->claimed, memory_order_relaxed);
        atomic_store_explicit(&unit->claimed, claimed | UINT64_C(1) << index.number, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        uint64_t live = atomic_load_explicit(&unit->live, memory_order_relaxed);
        if (CULET_UNLIKELY(!was_live(live, claimed, index.number)))
            culet_misuse(function, (uintptr_t)block);
        return;
    }
    if (CULET_UNLIKELY(!culet_bias_enter_biased(cache))) {
        free_shared(klass, slab, index.unit, index.number, block, function);
        return;
    }
    /* Only the biased thread changes the word. */
    uint64_t live = atomic_load_explicit(&unit->live, memory_order_relaxed);
    uint64_t rest = live & ~(UINT64_C(1) << index.number);
    atomic_store_explicit(&unit->live, rest, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    uint64_t claimed = atomic_load_explicit(&unit->claimed, memory_order_relaxed);
    if (CULET_UNLIKELY(!was_live(live, claimed, index.number)))
        leave_and_report(function, block);
    else if (CULET_UNLIKELY(live == culet_class_full(c, index.unit) || !rest))
        note_as_biased(klass, slab, index.unit);
    else
        culet_bias_leave_cached(cache);
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
    unsigned klass = culet_entry_class(entry);

    if (CULET_UNLIKELY(!klass))
        return usable_not_slab(function, block, entry);
    const struct culet_class *c = &culet_classes[klass];
    struct culet_block_index index = culet_slab_index(c, culet_entry_offset(entry, (uintptr_t)block));
    if (CULET_UNLIKELY(!index.exact || !culet_slab_is_live(culet_entry_slab(entry), index)))
        culet_misuse(function, (uintptr_t)block);
    return c->size;
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
    if (CULET_UNLIKELY(!culet_entry_class(entry)))
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
    if (!culet_entry_class(entry) && !culet_abandoned()) {
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
    if (CULET_LIKELY(culet_entry_class(entry) && bytes) && stays(bytes, usable("realloc", block, entry)))
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
