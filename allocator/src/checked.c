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

/* No byte of a canary is 0: most overflows by one byte are a string's end. */
#define NO_ZERO UINT64_C(0x0101010101010101)

/* Numbers of canaries: two are combined with shape and state; the others are in pairs in the trailer, in the padding and in
 * front of the block. */
enum { SHAPE, STATE, LONGER, PADDING_PAIR = LONGER + 2, FRONT_PAIR = PADDING_PAIR + 2 };

/* Ends the block. */
struct trailer {
    uint64_t shape; /* requested bytes, with the bytes in front of them from bit 32 on */
    _Atomic uint64_t state;
};

/* Held while a trailer changes, but for that of a block that is not live yet at level 2. */
struct culet_lock culet_checked_lock;
static void **quarantine;            /* [lock, as the following] in no order */
static _Atomic uint32_t quarantined; /* blocks; also read without the lock */
static size_t quarantined_bytes;     /* of their classes */
static uint32_t arrived;             /* blocks since the last call of culet_checked_decay */
static uintptr_t recent[RECENT];     /* live, or in quarantine; or 0 */
static unsigned recent_next;

/* What is wrong with a block. Reported without the lock, since a handler of SIGABRT may allocate. */
struct finding {
    enum culet_problem problem;
    uintptr_t pointer; /* as the program has it */
    size_t size;       /* of the class */
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

/* Bytes in front of those that the program gets; a block with a larger alignment begins with the program's. */
static size_t front_bytes(size_t alignment)
{
    return alignment <= CULET_ALIGNMENT ? culet_harden_front() : 0;
}

static struct trailer *trailer_of(uintptr_t block, size_t size)
{
    return (struct trailer *)(block + size - sizeof(struct trailer));
}

static uint64_t state_word(uintptr_t block, uint64_t state)
{
    return culet_harden_canary(block, STATE) ^ state;
}

/* Which bytes of a block the program has. */
struct shape {
    size_t front, bytes;
};

static uint64_t shape_word(uintptr_t block, struct shape shape)
{
    return culet_harden_canary(block, SHAPE) ^ (shape.front << 32 | shape.bytes);
}

/* That of a block in quarantine. */
static struct shape no_shape(size_t size)
{
    return (struct shape){.front = 0, .bytes = size};
}

/* False if it is not one that a block of this size has. */
static bool read_shape(uintptr_t block, size_t size, struct shape *shape)
{
    uint64_t word = trailer_of(block, size)->shape ^ culet_harden_canary(block, SHAPE);

    *shape = (struct shape){.front = word >> 32, .bytes = (uint32_t)word};
    return (!shape->front || shape->front == culet_harden_front()) &&
           shape->bytes <= size - trailer_bytes() - shape->front;
}

/* Bytes of padding behind the requested ones that have canaries. */
static size_t padding_of(size_t size, struct shape shape)
{
    size_t all = size - trailer_bytes() - shape.front - shape.bytes;
    return all < PADDING ? all : PADDING;
}

/* Calls `visit` for a range of bytes, with the canaries for each 16 of them, until it returns false. */
static inline bool visit_range(uintptr_t block, unsigned pair, uintptr_t start, size_t bytes,
                               bool (*visit)(void *, const void *, size_t))
{
    uint64_t canary[2] = {culet_harden_canary(block, pair) | NO_ZERO, culet_harden_canary(block, pair + 1) | NO_ZERO};

    for (size_t at = 0; at < bytes; at += sizeof canary)
        if (!visit((void *)(start + at), canary, bytes - at < sizeof canary ? bytes - at : sizeof canary))
            return false;
    return true;
}

/* Calls `visit` for the canaries of a block of `size` bytes, in front of the program's bytes, behind them and in the
 * trailer, but not for those in shape and state, until it returns false. */
static inline bool visit_canaries(uintptr_t block, size_t size, struct shape shape,
                                  bool (*visit)(void *, const void *, size_t))
{
    return (!shape.front || visit_range(block, FRONT_PAIR, block, shape.front, visit)) &&
           visit_range(block, PADDING_PAIR, block + shape.front + shape.bytes, padding_of(size, shape), visit) &&
           visit_range(block, LONGER, block + size - trailer_bytes(), trailer_bytes() - sizeof(struct trailer), visit);
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

static void write_canaries(uintptr_t block, size_t size, struct shape shape)
{
    trailer_of(block, size)->shape = shape_word(block, shape);
    visit_canaries(block, size, shape, write_bytes);
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

static struct finding nothing(void)
{
    return (struct finding){.problem = CULET_FINE};
}

/* Of a block that has no shape: as if it were requested without an alignment. */
static struct finding finding(enum culet_problem problem, uintptr_t block, size_t size)
{
    return (struct finding){.problem = problem, .pointer = block + culet_harden_front(), .size = size};
}

_Noreturn static void report(const char *function, struct finding found)
{
    culet_misuse_problem(function, found.problem, found.pointer, found.size);
}

static uint64_t state_of(uintptr_t block, size_t size)
{
    return atomic_load_explicit(&trailer_of(block, size)->state, memory_order_relaxed);
}

/* A block in quarantine is zero but for its trailer. `most`: bytes that are looked at in front of it. */
static bool freed_is_intact(uintptr_t block, size_t size, size_t most)
{
    size_t bytes = size - trailer_bytes();

    return trailer_of(block, size)->shape == shape_word(block, no_shape(size)) &&
           is_zero(block + bytes, trailer_bytes() - sizeof(struct trailer)) &&
           is_zero(block, bytes < most ? bytes : most);
}

/* The canaries of a live block. Stores its shape. */
static enum culet_problem check_canaries(uintptr_t block, size_t size, struct shape *shape)
{
    if (!read_shape(block, size, shape))
        return CULET_OVERFLOW;
    if (visit_canaries(block, size, *shape, same_bytes))
        return CULET_FINE;
    return shape->front && !visit_range(block, FRONT_PAIR, block, shape->front, same_bytes) ? CULET_UNDERFLOW
                                                                                            : CULET_OVERFLOW;
}

/* A block that is live or in quarantine. */
static struct finding check_block(uintptr_t block, size_t size, size_t most)
{
    uint64_t state = state_of(block, size);
    struct shape shape;

    if (state == state_word(block, FREED))
        return freed_is_intact(block, size, most) ? nothing() : finding(CULET_DANGLING, block, size);
    return finding(state == state_word(block, LIVE) ? check_canaries(block, size, &shape) : CULET_OVERFLOW, block,
                   size);
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
    struct finding found = nothing();

    for (unsigned i = 0; i < RECENT && !found.problem && culet_harden_level >= CULET_HARDEN_ALL; i++) {
        if (!recent[i])
            continue;
        const struct culet_slab *slab = (struct culet_slab *)culet_pagemap_span(recent[i]);
        found = check_block(recent[i], culet_slab_class(slab)->size, RECENT_BYTES);
    }
    return found;
}

/* ---- requests ---- */

/* The block is zero, in the pages of a forked child made so, and gets a trailer. */
static void begin_block(const struct culet_slab *slab, uintptr_t block, size_t size, struct shape shape)
{
    culet_inherited_own(slab, block, size);
    if (culet_inherited_stale(slab, block, size))
        memset((void *)block, 0, size);
    else if (CULET_UNLIKELY(!is_zero(block, size)))
        report(CHECK, finding(CULET_DANGLING, block, size));

    struct finding found = nothing();
    bool all = culet_harden_level >= CULET_HARDEN_ALL;
    if (all)
        culet_lock(&culet_checked_lock);
    write_canaries(block, size, shape);
    atomic_store_explicit(&trailer_of(block, size)->state, state_word(block, LIVE), memory_order_relaxed);
    if (all) {
        add_recent(block);
        found = check_recent();
        culet_unlock(&culet_checked_lock);
    }
    if (CULET_UNLIKELY(found.problem))
        report(CHECK, found);
}

static void *get_small(struct shape shape, unsigned klass)
{
    struct culet_arena *arena = culet_arena_enter();
    uintptr_t block = (uintptr_t)culet_bin_get_random(arena, klass);

    culet_arena_leave(arena);
    if (block && culet_harden_level >= CULET_HARDEN_CANARIES)
        begin_block((struct culet_slab *)culet_pagemap_span(block), block, culet_classes[klass].size, shape);
    return block ? (void *)(block + shape.front) : NULL;
}

void *culet_checked_get(size_t bytes, size_t alignment, bool *zeroed)
{
    struct shape shape = {.front = front_bytes(alignment), .bytes = bytes};
    size_t more = shape.front + trailer_bytes();
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
        return get_small(shape, klass);
    }
    return culet_sampling_get_large(bytes ? bytes : 1, alignment, zeroed);
}

/* ---- frees ---- */

static bool is_live(const struct culet_slab *slab, uintptr_t block)
{
    if (block < slab->span.start)
        return false;
    struct culet_block_index index = culet_slab_index(slab, block);
    return index.exact && culet_slab_is_live(slab, index.block);
}

/* The block of a pointer, with bytes in front of it or without; a misuse unless it is live, as far as the slab knows. No two
 * blocks of a class of level 3 are so near to each other. */
static uintptr_t block_of(const char *function, const struct culet_slab *slab, uintptr_t pointer)
{
    uintptr_t block = pointer - culet_harden_front();

    if (CULET_LIKELY(is_live(slab, block)))
        return block;
    if (CULET_UNLIKELY(block == pointer || !is_live(slab, pointer)))
        culet_misuse(function, pointer);
    return pointer;
}

/* A block that the program passes as `pointer`. Stores its shape. [lock, or the program must not free it now] */
static struct finding check_passed(uintptr_t block, size_t size, uintptr_t pointer, struct shape *shape)
{
    uint64_t state = state_of(block, size);
    enum culet_problem problem = CULET_OVERFLOW;

    if (CULET_LIKELY(state == state_word(block, LIVE)))
        problem = check_canaries(block, size, shape);
    else if (state == state_word(block, FREED))
        problem = CULET_QUARANTINED;
    if (CULET_UNLIKELY(problem == CULET_FINE && block + shape->front != pointer))
        problem = CULET_NOT_THE_START;
    return (struct finding){.problem = problem, .pointer = pointer, .size = size};
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
        return finding(CULET_DANGLING, block, size);
    if (culet_inherited(slab, block, size))
        culet_inherited_set_stale(slab, block, size);
    else
        memset(trailer_of(block, size), 0, sizeof(struct trailer));
    return nothing();
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
    return *left ? leave(*left) : nothing();
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

/* A block of a slab is freed: into the quarantine, or, from an inherited page, which is not to be written, at once. The state
 * becomes FREED, so that of two frees one fails. Stores the block to free. */
static struct finding put(const struct culet_slab *slab, uintptr_t block, size_t size, uintptr_t pointer, void **left)
{
    struct shape shape;
    struct finding found = check_passed(block, size, pointer, &shape);

    if (CULET_UNLIKELY(found.problem))
        return found;
    if (culet_inherited(slab, block, size)) {
        culet_inherited_set_stale(slab, block, size);
        forget_recent(block);
        *left = (void *)block;
        return found;
    }
    memset((void *)block, 0, size - sizeof(struct trailer));
    trailer_of(block, size)->shape = shape_word(block, no_shape(size));
    atomic_store_explicit(&trailer_of(block, size)->state, state_word(block, FREED), memory_order_relaxed);
    add_recent(block);
    return enter((void *)block, size, left);
}

void *culet_checked_put(const char *function, struct culet_slab *slab, void *start)
{
    uintptr_t block = block_of(function, slab, (uintptr_t)start);
    void *left = NULL;

    if (culet_harden_level < CULET_HARDEN_CANARIES)
        return start;
    culet_lock(&culet_checked_lock);
    struct finding found = put(slab, block, culet_slab_class(slab)->size, (uintptr_t)start, &left);
    struct finding recently = found.problem ? found : check_recent();
    culet_unlock(&culet_checked_lock);
    if (CULET_UNLIKELY(found.problem))
        report(function, found);
    if (CULET_UNLIKELY(recently.problem))
        report(CHECK, recently);
    culet_wakeup_notify();
    return left;
}

/* A block beyond the bounds; NULL if there is none. */
static void *take_beyond(uint32_t blocks, size_t bytes)
{
    struct finding found = nothing();
    void *left = NULL;

    culet_lock(&culet_checked_lock);
    if (count() && (count() > blocks || quarantined_bytes > bytes))
        found = take(&left);
    culet_unlock(&culet_checked_lock);
    if (CULET_UNLIKELY(found.problem))
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

    for (size_t i = 0; i < c->count && !found->problem; i++) {
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
    struct finding found = nothing();

    if (culet_harden_level < CULET_HARDEN_ALL || culet_abandoned() || !lock_soon(&culet_pages_lock))
        return;
    if (lock_soon(&culet_checked_lock)) {
        culet_slab_each(check_slab, &found);
        culet_unlock(&culet_checked_lock);
    }
    culet_unlock(&culet_pages_lock);
    if (found.problem)
        report(CHECK, found);
}

/* ---- sizes ---- */

size_t culet_checked_usable(const char *function, const struct culet_slab *slab, void *start)
{
    uintptr_t block = block_of(function, slab, (uintptr_t)start);
    size_t size = culet_slab_class(slab)->size;
    struct shape shape;

    if (culet_harden_level < CULET_HARDEN_CANARIES)
        return size;
    struct finding found = check_passed(block, size, (uintptr_t)start, &shape);
    if (CULET_UNLIKELY(found.problem))
        report(function, found);
    return shape.bytes;
}

bool culet_checked_resize(const struct culet_slab *slab, void *start, size_t bytes)
{
    uintptr_t block = block_of("realloc", slab, (uintptr_t)start);
    struct shape shape = {.front = (uintptr_t)start - block, .bytes = bytes};
    size_t size = culet_slab_class(slab)->size, most = size - trailer_bytes() - shape.front;

    if (bytes > most || most - bytes > most / 4 + CULET_ALIGNMENT)
        return false;
    if (culet_harden_level >= CULET_HARDEN_CANARIES) {
        culet_lock(&culet_checked_lock);
        write_canaries(block, size, shape);
        culet_unlock(&culet_checked_lock);
    }
    return true;
}
