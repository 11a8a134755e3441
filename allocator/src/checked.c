#include "checked.h"

#include "arena.h"
#include "bin.h"
#include "harden.h"
#include "large.h"
#include "misuse.h"
#include "os.h"
#include "sampling.h"
#include "size_class.h"
#include "slab.h"

#include <string.h>

/* The quarantine's bounds, by level. It ends early: a program with few small blocks keeps few. */
#define QUARANTINE_BLOCKS (culet_harden_level >= CULET_HARDEN_ALL ? 16384u : 1024u)
#define QUARANTINE_BYTES ((size_t)(culet_harden_level >= CULET_HARDEN_ALL ? 16 : 1) << 20)

/* Padding bytes with canaries, at most. */
#define PADDING 16

#define LIVE UINT64_C(0x4C49564520202020)
#define FREED UINT64_C(0x4652454544202020)

/* Numbers of canaries: two are combined with size and state, two are in the trailer, two are in the padding. */
enum { SIZE, STATE, FIRST, SECOND, PADDING_FIRST, PADDING_SECOND };

/* Ends the block. */
struct trailer {
    uint64_t size;
    _Atomic uint64_t state;
};

struct culet_lock culet_checked_lock;
static void **quarantine;        /* [lock, as the following] in no order */
static uint32_t quarantined;     /* blocks */
static size_t quarantined_bytes; /* of their classes */

uintptr_t culet_checked_empty_start;
static _Atomic uint64_t *empty_live; /* a bit for each block of no bytes */
static _Atomic uint32_t empty_next;
#define EMPTY_BLOCKS ((uint32_t)(CULET_CHECKED_EMPTY_BYTES / CULET_ALIGNMENT))

void culet_checked_setup(void)
{
    if (!culet_harden_level)
        return;
    empty_live = culet_os_map(EMPTY_BLOCKS / 8);
    if (empty_live)
        culet_checked_empty_start = (uintptr_t)culet_os_reserve(CULET_CHECKED_EMPTY_BYTES);
    if (culet_harden_level >= CULET_HARDEN_CANARIES)
        quarantine = culet_os_map(QUARANTINE_BLOCKS * sizeof *quarantine);
}

/* ---- blocks of no bytes: inaccessible addresses ---- */

static void *get_empty(void)
{
    if (!culet_checked_empty_start)
        return NULL;
    for (unsigned i = 0; i < 64; i++) {
        uint32_t n = atomic_fetch_add_explicit(&empty_next, 1 + culet_harden_random_below(8), memory_order_relaxed) %
                     EMPTY_BLOCKS;
        uint64_t bit = UINT64_C(1) << n % 64;
        if (!(atomic_fetch_or_explicit(&empty_live[n / 64], bit, memory_order_relaxed) & bit))
            return (void *)(culet_checked_empty_start + (uintptr_t)n * CULET_ALIGNMENT);
    }
    return NULL;
}

/* The word with the block's bit; NULL if no block starts at the address. */
static _Atomic uint64_t *empty_word(const void *block, uint64_t *bit)
{
    size_t offset = (uintptr_t)block - culet_checked_empty_start, n = offset / CULET_ALIGNMENT;

    *bit = UINT64_C(1) << n % 64;
    return offset % CULET_ALIGNMENT ? NULL : &empty_live[n / 64];
}

bool culet_checked_empty_is_live(const void *block)
{
    uint64_t bit;
    _Atomic uint64_t *word = empty_word(block, &bit);

    return word && atomic_load_explicit(word, memory_order_relaxed) & bit;
}

bool culet_checked_put_empty(const void *block)
{
    uint64_t bit;
    _Atomic uint64_t *word = empty_word(block, &bit);

    return word && atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed) & bit;
}

/* ---- trailers ---- */

static size_t trailer_bytes(void)
{
    static const uint8_t bytes[] = {0, 0, 16, 32};
    return bytes[culet_harden_level];
}

static struct trailer *trailer_of(uintptr_t block, size_t size)
{
    return (struct trailer *)(block + size - sizeof(struct trailer));
}

static uint64_t state_word(uintptr_t block, uint64_t state)
{
    return culet_harden_canary(block, STATE) ^ state;
}

/* Bytes of padding behind the requested ones that have canaries. */
static size_t padding_of(size_t size, size_t bytes)
{
    size_t all = size - trailer_bytes() - bytes;
    return all < PADDING ? all : PADDING;
}

/* The canaries of the padding, then those in front of the trailer. */
static void canaries_of(uintptr_t block, uint64_t padding[2], uint64_t longer[2])
{
    padding[0] = culet_harden_canary(block, PADDING_FIRST);
    padding[1] = culet_harden_canary(block, PADDING_SECOND);
    longer[0] = culet_harden_canary(block, FIRST);
    longer[1] = culet_harden_canary(block, SECOND);
}

static void write_canaries(uintptr_t block, size_t size, size_t bytes)
{
    uint64_t padding[2], longer[2];

    canaries_of(block, padding, longer);
    trailer_of(block, size)->size = culet_harden_canary(block, SIZE) ^ bytes;
    memcpy((char *)block + bytes, padding, padding_of(size, bytes));
    memcpy((char *)block + size - trailer_bytes(), longer, trailer_bytes() - sizeof(struct trailer));
}

/* Whether the canaries are as they were written. Stores the requested size. */
static bool read_canaries(uintptr_t block, size_t size, size_t *bytes)
{
    uint64_t padding[2], longer[2];

    *bytes = trailer_of(block, size)->size ^ culet_harden_canary(block, SIZE);
    if (*bytes > size - trailer_bytes())
        return false;
    canaries_of(block, padding, longer);
    return memcmp((char *)block + *bytes, padding, padding_of(size, *bytes)) == 0 &&
           memcmp((char *)block + size - trailer_bytes(), longer, trailer_bytes() - sizeof(struct trailer)) == 0;
}

static bool is_zero(uintptr_t block, size_t bytes)
{
    const uint64_t *word = (const uint64_t *)block;
    uint64_t seen = 0;

    for (size_t i = 0; i < bytes / sizeof *word; i++)
        seen |= word[i];
    return !seen;
}

/* ---- requests ---- */

static void *get_small(size_t bytes, unsigned klass)
{
    struct culet_arena *arena = culet_arena_enter();
    uintptr_t block = (uintptr_t)culet_bin_get_random(arena, klass);
    size_t size = culet_classes[klass].size;

    culet_arena_leave(arena);
    if (!block || culet_harden_level < CULET_HARDEN_CANARIES)
        return (void *)block;
    if (CULET_UNLIKELY(!is_zero(block, size)))
        culet_misuse_dangling(block, size);
    write_canaries(block, size, bytes);
    atomic_store_explicit(&trailer_of(block, size)->state, state_word(block, LIVE), memory_order_relaxed);
    return (void *)block;
}

void *culet_checked_get(size_t bytes, size_t alignment, bool *zeroed)
{
    size_t more = trailer_bytes();
    unsigned klass = 0;
    void *block;

    /* The fast path has entered. */
    culet_arena_leave_held(&culet_thread);
    *zeroed = culet_harden_level >= CULET_HARDEN_CANARIES;
    if (bytes == 0 && alignment <= CULET_ALIGNMENT && (block = get_empty()))
        return block;
    if (bytes <= CULET_SMALL_MAX - more)
        klass = alignment <= CULET_ALIGNMENT ? culet_size_class(bytes + more)
                                             : culet_size_class_aligned(bytes + more, alignment);
    if (klass) {
        size_t usable = more ? bytes : culet_classes[klass].size;
        if (usable && culet_sampling_due(usable) && (block = culet_sampling_get(usable, alignment, zeroed)))
            return block;
        return get_small(bytes, klass);
    }
    return culet_sampling_get_large(bytes ? bytes : 1, alignment, zeroed);
}

/* ---- frees ---- */

/* The block's size class in bytes. A misuse unless the block is live, as far as the slab knows. */
static size_t check_live(const char *function, const struct culet_slab *slab, uintptr_t block)
{
    struct culet_block_index index = culet_slab_index(slab, block);

    if (CULET_UNLIKELY(!index.exact || !culet_slab_is_live(slab, index.block)))
        culet_misuse(function, block);
    return culet_slab_class(slab)->size;
}

/* A free changes the state first, so that of two frees one fails. */
static void set_freed(const char *function, uintptr_t block, size_t size)
{
    uint64_t live = state_word(block, LIVE), freed = state_word(block, FREED), seen = live;

    if (CULET_LIKELY(atomic_compare_exchange_strong_explicit(&trailer_of(block, size)->state, &seen, freed,
                                                             memory_order_relaxed, memory_order_relaxed)))
        return;
    if (seen == freed)
        culet_misuse_quarantined(function, block, size);
    culet_misuse_overflow(function, block, size);
}

/* ---- quarantine ---- */

static size_t size_of(const void *block)
{
    return culet_slab_class((struct culet_slab *)culet_pagemap_span((uintptr_t)block))->size;
}

/* Adds a block. Returns a random one that had to leave, or NULL. */
static void *replace(void *start, size_t size)
{
    void *left = NULL;
    uint32_t at;

    culet_lock(&culet_checked_lock);
    if (quarantined < QUARANTINE_BLOCKS) {
        at = quarantined++;
    } else {
        at = culet_harden_random_below(quarantined);
        left = quarantine[at];
        quarantined_bytes -= size_of(left);
    }
    quarantine[at] = start;
    quarantined_bytes += size;
    culet_unlock(&culet_checked_lock);
    return left;
}

/* Checks and clears the trailer of a block that has left the quarantine; the rest is checked by its next request. */
static void *leave(void *start)
{
    if (!start)
        return NULL;
    uintptr_t block = (uintptr_t)start;
    size_t size = size_of(start);
    struct trailer *trailer = trailer_of(block, size);
    if (CULET_UNLIKELY(trailer->size != (culet_harden_canary(block, SIZE) ^ size) ||
                       atomic_load_explicit(&trailer->state, memory_order_relaxed) != state_word(block, FREED)))
        culet_misuse_dangling(block, size);
    memset(trailer, 0, sizeof *trailer);
    return start;
}

void *culet_checked_put(const char *function, struct culet_slab *slab, void *start)
{
    uintptr_t block = (uintptr_t)start;
    size_t size = check_live(function, slab, block), bytes;

    if (culet_harden_level < CULET_HARDEN_CANARIES)
        return start;
    set_freed(function, block, size);
    if (CULET_UNLIKELY(!read_canaries(block, size, &bytes)))
        culet_misuse_overflow(function, block, size);
    memset(start, 0, size - sizeof(struct trailer));
    trailer_of(block, size)->size = culet_harden_canary(block, SIZE) ^ size;

    return leave(quarantine ? replace(start, size) : start);
}

void *culet_checked_evict(void)
{
    void *start = NULL;

    if (culet_harden_level < CULET_HARDEN_CANARIES)
        return NULL;
    culet_lock(&culet_checked_lock);
    if (quarantined_bytes > QUARANTINE_BYTES) {
        uint32_t at = culet_harden_random_below(quarantined);
        start = quarantine[at];
        quarantine[at] = quarantine[--quarantined];
        quarantined_bytes -= size_of(start);
    }
    culet_unlock(&culet_checked_lock);
    return leave(start);
}

/* ---- sizes ---- */

size_t culet_checked_usable(const char *function, const struct culet_slab *slab, void *start)
{
    uintptr_t block = (uintptr_t)start;
    size_t size = check_live(function, slab, block), bytes;

    if (culet_harden_level < CULET_HARDEN_CANARIES)
        return size;
    uint64_t state = atomic_load_explicit(&trailer_of(block, size)->state, memory_order_relaxed);
    if (CULET_UNLIKELY(state == state_word(block, FREED)))
        culet_misuse_quarantined(function, block, size);
    if (CULET_UNLIKELY(state != state_word(block, LIVE) || !read_canaries(block, size, &bytes)))
        culet_misuse_overflow(function, block, size);
    return bytes;
}

bool culet_checked_resize(const struct culet_slab *slab, void *block, size_t bytes)
{
    size_t size = culet_slab_class(slab)->size, most = size - trailer_bytes();

    if (bytes > most || most - bytes > most / 4 + CULET_ALIGNMENT)
        return false;
    if (culet_harden_level >= CULET_HARDEN_CANARIES)
        write_canaries((uintptr_t)block, size, bytes);
    return true;
}
