#include "checked.h"

#include "abandoned.h"
#include "arena.h"
#include "bin.h"
#include "harden.h"
#include "inherited.h"
#include "large.h"
#include "misuse.h"
#include "os.h"
#include "pagemap.h"
#include "pages.h"
#include "sampling.h"
#include "size_class.h"
#include "slab.h"

#include <string.h>

/* The quarantine's bounds, by level. It ends early: a program with few small blocks keeps few. */
#define QUARANTINE_BLOCKS (culet_harden_level >= CULET_HARDEN_ALL ? 16384u : 1024u)
#define QUARANTINE_BYTES ((size_t)(culet_harden_level >= CULET_HARDEN_ALL ? 16 : 1) << 20)

/* Padding bytes with canaries, at most; a multiple of 16. */
#define PADDING (culet_harden_level >= CULET_HARDEN_ALL ? (size_t)CULET_SMALL_MAX : (size_t)16)

/* Blocks that were requested or freed last: an access that is wrong mostly follows soon. */
#define RECENT 8
/* Bytes of a freed one of these that are looked at. */
#define RECENT_BYTES 512

/* In place of a function, of a finding that is another block than the one passed to it. */
#define CHECK "check"

#define LIVE UINT64_C(0x4C49564520202020)
#define FREED UINT64_C(0x4652454544202020)

/* Numbers of canaries: two are combined with size and state, two are in the trailer, two are in the padding. */
enum { SIZE, STATE, FIRST, SECOND, PADDING_FIRST, PADDING_SECOND };

/* Ends the block. */
struct trailer {
    uint64_t size;
    _Atomic uint64_t state;
};

/* Held while a trailer changes, but for that of a block that is not live yet at level 2. */
struct culet_lock culet_checked_lock;
static void **quarantine;           /* [lock, as the following] in no order */
static _Atomic uint32_t quarantined; /* blocks; also read without the lock */
static size_t quarantined_bytes;    /* of their classes */
static uint32_t arrived;            /* blocks since the last call of culet_checked_decay */
static uintptr_t recent[RECENT];    /* live, or in quarantine; or 0 */
static unsigned recent_next;

/* What is wrong with a block. Reported without the lock, since a handler of SIGABRT may allocate. */
struct finding {
    enum { NOTHING, IS_FREE, OVERFLOW, UNDERFLOW, DANGLING } kind;
    uintptr_t block;
    size_t size;
};

void culet_checked_setup(void)
{
    if (culet_harden_level >= CULET_HARDEN_CANARIES)
        quarantine = culet_os_map(QUARANTINE_BLOCKS * sizeof *quarantine);
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

/* Calls `visit` for the canaries of the padding, 16 bytes at a time, then for those in front of the trailer; until it
 * returns false. */
static inline bool each_canary(uintptr_t block, size_t size, size_t bytes, bool (*visit)(void *, const void *, size_t))
{
    uint64_t padding[2] = {culet_harden_canary(block, PADDING_FIRST), culet_harden_canary(block, PADDING_SECOND)};
    uint64_t longer[2] = {culet_harden_canary(block, FIRST), culet_harden_canary(block, SECOND)};
    size_t all = padding_of(size, bytes);

    for (size_t at = 0; at < all; at += sizeof padding)
        if (!visit((char *)block + bytes + at, padding, all - at < sizeof padding ? all - at : sizeof padding))
            return false;
    return visit((char *)block + size - trailer_bytes(), longer, trailer_bytes() - sizeof(struct trailer));
}

static bool write_bytes(void *to, const void *canary, size_t bytes)
{
    memcpy(to, canary, bytes);
    return true;
}

static bool same_bytes(void *at, const void *canary, size_t bytes)
{
    return memcmp(at, canary, bytes) == 0;
}

static void write_canaries(uintptr_t block, size_t size, size_t bytes)
{
    trailer_of(block, size)->size = culet_harden_canary(block, SIZE) ^ bytes;
    each_canary(block, size, bytes, write_bytes);
}

/* Whether the canaries are as they were written. Stores the requested size. */
static bool read_canaries(uintptr_t block, size_t size, size_t *bytes)
{
    *bytes = trailer_of(block, size)->size ^ culet_harden_canary(block, SIZE);
    return *bytes <= size - trailer_bytes() && each_canary(block, size, *bytes, same_bytes);
}

static bool is_zero(uintptr_t block, size_t bytes)
{
    const uint64_t *word = (const uint64_t *)block;
    uint64_t seen = 0;

    for (size_t i = 0; i < bytes / sizeof *word; i++)
        seen |= word[i];
    return !seen;
}

/* ---- checks of a block. [lock] ---- */

static struct finding finding(int kind, uintptr_t block, size_t size)
{
    return (struct finding){.kind = kind, .block = block, .size = size};
}

_Noreturn static void report(const char *function, struct finding found)
{
    if (found.kind == IS_FREE)
        culet_misuse_quarantined(function, found.block, found.size);
    if (found.kind == OVERFLOW)
        culet_misuse_overflow(function, found.block, found.size);
    if (found.kind == UNDERFLOW)
        culet_misuse_underflow(function, found.block, found.size);
    culet_misuse_dangling(found.block, found.size);
}

static uint64_t state_of(uintptr_t block, size_t size)
{
    return atomic_load_explicit(&trailer_of(block, size)->state, memory_order_relaxed);
}

/* A block in quarantine is zero but for its trailer. `most`: bytes that are looked at in front of it. */
static bool freed_is_intact(uintptr_t block, size_t size, size_t most)
{
    size_t bytes = size - trailer_bytes();

    return trailer_of(block, size)->size == (culet_harden_canary(block, SIZE) ^ size) &&
           is_zero(block + bytes, trailer_bytes() - sizeof(struct trailer)) &&
           is_zero(block, bytes < most ? bytes : most);
}

/* A block that is live or in quarantine. */
static struct finding check_block(uintptr_t block, size_t size, size_t most)
{
    uint64_t state = state_of(block, size);
    size_t bytes;

    if (state == state_word(block, FREED))
        return finding(freed_is_intact(block, size, most) ? NOTHING : DANGLING, block, size);
    if (state == state_word(block, LIVE) && read_canaries(block, size, &bytes))
        return finding(NOTHING, block, size);
    return finding(OVERFLOW, block, size);
}

/* The end of the block before this one, live or not, is where an underflow of this one arrives. */
static struct finding check_before(const struct culet_slab *slab, uintptr_t block, size_t size)
{
    uintptr_t before = block - size;
    size_t tail = trailer_bytes();

    if (culet_harden_level < CULET_HARDEN_ALL || block == slab->span.start ||
        culet_inherited_stale(slab, before, size))
        return finding(NOTHING, block, size);
    bool intact = state_of(before, size) ? !check_block(before, size, 0).kind : is_zero(before + size - tail, tail);
    return finding(intact ? NOTHING : UNDERFLOW, block, size);
}

/* ---- recent blocks. [lock] ---- */

static void forget_recent(uintptr_t block)
{
    for (unsigned i = 0; i < RECENT; i++)
        if (recent[i] == block)
            recent[i] = 0;
}

static void add_recent(uintptr_t block)
{
    forget_recent(block);
    recent[recent_next++ % RECENT] = block;
}

static struct finding check_recent(void)
{
    struct finding found = finding(NOTHING, 0, 0);

    for (unsigned i = 0; i < RECENT && !found.kind && culet_harden_level >= CULET_HARDEN_ALL; i++) {
        if (!recent[i])
            continue;
        const struct culet_slab *slab = (struct culet_slab *)culet_pagemap_span(recent[i]);
        size_t size = culet_slab_class(slab)->size;
        found = check_block(recent[i], size, RECENT_BYTES);
        if (!found.kind)
            found = check_before(slab, recent[i], size);
    }
    return found;
}

/* ---- requests ---- */

/* The block is zero, in the pages of a forked child made so, and gets a trailer. */
static void begin_block(const struct culet_slab *slab, uintptr_t block, size_t size, size_t bytes)
{
    culet_inherited_own(slab, block, size);
    if (culet_inherited_stale(slab, block, size))
        memset((void *)block, 0, size);
    else if (CULET_UNLIKELY(!is_zero(block, size)))
        culet_misuse_dangling(block, size);

    struct finding found = finding(NOTHING, block, size);
    bool all = culet_harden_level >= CULET_HARDEN_ALL;
    if (all)
        culet_lock(&culet_checked_lock);
    write_canaries(block, size, bytes);
    atomic_store_explicit(&trailer_of(block, size)->state, state_word(block, LIVE), memory_order_relaxed);
    if (all) {
        add_recent(block);
        found = check_recent();
        culet_unlock(&culet_checked_lock);
    }
    if (CULET_UNLIKELY(found.kind != NOTHING))
        report(CHECK, found);
}

static void *get_small(size_t bytes, unsigned klass)
{
    struct culet_arena *arena = culet_arena_enter();
    uintptr_t block = (uintptr_t)culet_bin_get_random(arena, klass);

    culet_arena_leave(arena);
    if (block && culet_harden_level >= CULET_HARDEN_CANARIES)
        begin_block((struct culet_slab *)culet_pagemap_span(block), block, culet_classes[klass].size, bytes);
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

/* The state becomes FREED, so that of two frees one fails; that of a block on an inherited page, which is not to be written,
 * is only looked at. [lock] */
static struct finding end_block(const struct culet_slab *slab, uintptr_t block, size_t size, bool inherited)
{
    uint64_t live = state_word(block, LIVE), freed = state_word(block, FREED), seen = state_of(block, size);
    size_t bytes;

    if (CULET_UNLIKELY(seen != live))
        return finding(seen == freed ? IS_FREE : OVERFLOW, block, size);
    if (!inherited)
        atomic_store_explicit(&trailer_of(block, size)->state, freed, memory_order_relaxed);
    if (CULET_UNLIKELY(!read_canaries(block, size, &bytes)))
        return finding(OVERFLOW, block, size);
    return check_before(slab, block, size);
}

/* ---- quarantine. [lock] ---- */

/* Checks and clears the trailer of a block that leaves the quarantine; the rest is checked by its next request. */
static struct finding leave(void *start)
{
    uintptr_t block = (uintptr_t)start;
    const struct culet_slab *slab = (struct culet_slab *)culet_pagemap_span(block);
    size_t size = culet_slab_class(slab)->size;

    forget_recent(block);
    quarantined_bytes -= size;
    if (CULET_UNLIKELY(state_of(block, size) != state_word(block, FREED) || !freed_is_intact(block, size, 0)))
        return finding(DANGLING, block, size);
    if (culet_inherited(slab, block, size))
        culet_inherited_set_stale(slab, block, size);
    else
        memset(trailer_of(block, size), 0, sizeof(struct trailer));
    return finding(NOTHING, block, size);
}

static uint32_t count(void)
{
    return atomic_load_explicit(&quarantined, memory_order_relaxed);
}

/* Adds a block; where there is no room, a random one leaves in its place, which is stored. */
static struct finding enter(void *start, size_t size, void **left)
{
    uint32_t blocks = count();

    quarantined_bytes += size;
    arrived++;
    if (CULET_UNLIKELY(!quarantine)) {
        *left = start;
    } else if (blocks < QUARANTINE_BLOCKS) {
        quarantine[blocks] = start;
        atomic_store_explicit(&quarantined, blocks + 1, memory_order_relaxed);
    } else {
        void **place = &quarantine[culet_harden_random_below(blocks)];
        *left = *place;
        *place = start;
    }
    return *left ? leave(*left) : finding(NOTHING, 0, 0);
}

/* A random block leaves. */
static struct finding take(void **left)
{
    uint32_t blocks = count();
    void **place = &quarantine[culet_harden_random_below(blocks)];

    *left = *place;
    *place = quarantine[blocks - 1];
    atomic_store_explicit(&quarantined, blocks - 1, memory_order_relaxed);
    return leave(*left);
}

/* A block of a slab is freed: into the quarantine, or, from an inherited page, at once. Stores the block to free. */
static struct finding put(const struct culet_slab *slab, void *start, size_t size, void **left)
{
    uintptr_t block = (uintptr_t)start;
    bool inherited = culet_inherited(slab, block, size);
    struct finding found = end_block(slab, block, size, inherited);

    if (CULET_UNLIKELY(found.kind != NOTHING))
        return found;
    if (inherited) {
        culet_inherited_set_stale(slab, block, size);
        forget_recent(block);
        *left = start;
        return found;
    }
    memset(start, 0, size - sizeof(struct trailer));
    trailer_of(block, size)->size = culet_harden_canary(block, SIZE) ^ size;
    add_recent(block);
    return enter(start, size, left);
}

void *culet_checked_put(const char *function, struct culet_slab *slab, void *start)
{
    size_t size = check_live(function, slab, (uintptr_t)start);
    void *left = NULL;

    if (culet_harden_level < CULET_HARDEN_CANARIES)
        return start;
    culet_lock(&culet_checked_lock);
    struct finding found = put(slab, start, size, &left), recently = found;
    if (CULET_LIKELY(found.kind == NOTHING))
        recently = check_recent();
    culet_unlock(&culet_checked_lock);
    if (CULET_UNLIKELY(found.kind != NOTHING))
        report(function, found);
    if (CULET_UNLIKELY(recently.kind != NOTHING))
        report(CHECK, recently);
    culet_wakeup_notify();
    return left;
}

/* A block beyond the bounds; NULL if there is none. */
static void *take_beyond(uint32_t blocks, size_t bytes)
{
    struct finding found = finding(NOTHING, 0, 0);
    void *left = NULL;

    culet_lock(&culet_checked_lock);
    if (count() && (count() > blocks || quarantined_bytes > bytes))
        found = take(&left);
    culet_unlock(&culet_checked_lock);
    if (CULET_UNLIKELY(found.kind != NOTHING))
        report(CHECK, found);
    return left;
}

void *culet_checked_evict(void)
{
    return culet_harden_level < CULET_HARDEN_CANARIES ? NULL : take_beyond(QUARANTINE_BLOCKS, QUARANTINE_BYTES);
}

/* ---- memory that the quarantine keeps ---- */

static void drain(uint32_t keep)
{
    void *start;

    while (count() > keep && (start = take_beyond(keep, SIZE_MAX))) {
        struct culet_slab *slab = (struct culet_slab *)culet_pagemap_span((uintptr_t)start);
        if (!culet_bin_free_remote(slab, culet_slab_index(slab, (uintptr_t)start).block))
            culet_misuse("free", (uintptr_t)start);
    }
}

void culet_checked_drain(void)
{
    drain(0);
}

bool culet_checked_keeps_pages(void)
{
    return count() > CULET_QUARANTINE_IDLE_BLOCKS;
}

bool culet_checked_decay(void)
{
    if (!count())
        return false;
    culet_lock(&culet_checked_lock);
    uint32_t lately = arrived;
    arrived = 0;
    culet_unlock(&culet_checked_lock);
    drain(lately > CULET_QUARANTINE_IDLE_BLOCKS ? lately : CULET_QUARANTINE_IDLE_BLOCKS);
    return culet_checked_keeps_pages();
}

/* ---- all blocks ---- */

/* A block that is not free is live, in quarantine, or on its way between these, with a state of 0. */
static void check_slab(struct culet_slab *slab, void *data)
{
    struct finding *found = data;
    const struct culet_class *c = culet_slab_class(slab);

    for (size_t i = 0; i < c->count && !found->kind; i++) {
        uintptr_t block = slab->span.start + i * c->size;
        if (culet_slab_is_live(slab, i) && !culet_inherited_stale(slab, block, c->size) && state_of(block, c->size))
            *found = check_block(block, c->size, c->size);
    }
}

/* False: a thread holds the lock for long, perhaps the one that calls exit in a signal handler. */
static bool lock_soon(struct culet_lock *lock)
{
    for (unsigned i = 0; i < 1000; i++) {
        if (culet_lock_try(lock))
            return true;
        culet_os_pause(10);
    }
    return false;
}

void culet_checked_at_exit(void)
{
    struct finding found = finding(NOTHING, 0, 0);

    if (culet_harden_level < CULET_HARDEN_ALL || culet_abandoned() || !lock_soon(&culet_pages_lock))
        return;
    if (lock_soon(&culet_checked_lock)) {
        culet_slab_each(check_slab, &found);
        culet_unlock(&culet_checked_lock);
    }
    culet_unlock(&culet_pages_lock);
    if (found.kind != NOTHING)
        report(CHECK, found);
}

/* ---- sizes ---- */

size_t culet_checked_usable(const char *function, const struct culet_slab *slab, void *start)
{
    uintptr_t block = (uintptr_t)start;
    size_t size = check_live(function, slab, block), bytes;

    if (culet_harden_level < CULET_HARDEN_CANARIES)
        return size;
    uint64_t state = state_of(block, size);
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
    if (culet_harden_level >= CULET_HARDEN_CANARIES) {
        culet_lock(&culet_checked_lock);
        write_canaries((uintptr_t)block, size, bytes);
        culet_unlock(&culet_checked_lock);
    }
    return true;
}
