/* Many threads, all functions, blocks passed between threads, threads that start and end. Contents are checked
 * throughout; at the end everything is free and the counts are right. STRESS_SCALE (default 1) multiplies the work; the
 * random numbers are the same on every machine. */
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "heap_counts.h"

#include <pthread.h>
#include <sched.h>

#define THREADS 6
#define HELD 400
#define MAILBOX 512

struct block {
    unsigned char *start;
    size_t bytes;
    uint64_t tag;
};

static struct block mailbox[MAILBOX]; /* [mailbox_lock] */
static unsigned mailbox_count;
static pthread_mutex_t mailbox_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned trim_every = 3000;

static unsigned scaled(unsigned work)
{
    const char *given = getenv("STRESS_SCALE");
    double scale = given ? strtod(given, NULL) : 1;

    CHECK(scale > 0, "STRESS_SCALE is no number");
    return scale * work < 1 ? 1 : (unsigned)(scale * work);
}

static unsigned char byte_at(const struct block *block, size_t i)
{
    return (unsigned char)(block->tag + i * 7);
}

/* All of a small block, the ends and some of the middle of a large one. */
static size_t next_byte(const struct block *block, size_t i)
{
    return i < 256 || i + 64 >= block->bytes ? i + 1 : i + 4099 + 64 < block->bytes ? i + 4099 : block->bytes - 64;
}

static void sign(struct block *block, uint64_t tag)
{
    block->tag = tag;
    for (size_t i = 0; i < block->bytes; i = next_byte(block, i))
        block->start[i] = byte_at(block, i);
}

/* Checks the first `bytes` of a block, as far as they were written. */
static void verify(const struct block *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i = next_byte(block, i))
        if (block->start[i] != byte_at(block, i))
            CHECK(false, "byte %zu of a block of %zu at %p was changed", i, block->bytes, (void *)block->start);
    atomic_fetch_add_explicit(check_counter, 1, memory_order_relaxed);
}

/* Mostly small, as programs are. */
static size_t draw_bytes(uint64_t *seed)
{
    unsigned what = check_random(seed) % 1000;

    if (what < 850)
        return check_random(seed) % 600;
    if (what < 985)
        return check_random(seed) % 33000;
    if (what < 998)
        return check_random(seed) % 300000;
    return check_random(seed) % (3 << 20);
}

static void check_zero(const unsigned char *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (block[i])
            CHECK(false, "calloc's byte %zu of %zu is %u", i, bytes, block[i]);
}

static struct block make(uint64_t *seed)
{
    struct block block = {.bytes = draw_bytes(seed)};
    unsigned how = check_random(seed) % 10;
    size_t alignment = 16;

    if (how < 6) {
        block.start = culet_malloc(block.bytes);
    } else if (how < 8) {
        block.start = culet_calloc(1, block.bytes);
        CHECK(block.start, "no memory");
        check_zero(block.start, block.bytes);
    } else if (how < 9) {
        alignment = (size_t)16 << check_random(seed) % 10;
        block.start = culet_memalign(alignment, block.bytes);
    } else {
        void *got = NULL;
        alignment = (size_t)64 << check_random(seed) % 4;
        CHECK(culet_posix_memalign(&got, alignment, block.bytes) == 0, "no memory");
        block.start = got;
    }
    CHECK(block.start, "no memory for %zu bytes", block.bytes);
    CHECK((uintptr_t)block.start % alignment == 0, "%p is not aligned to %zu", (void *)block.start, alignment);
    CHECK(culet_malloc_usable_size(block.start) >= block.bytes, "too small");
    sign(&block, check_random(seed));
    return block;
}

static void resize(struct block *block, uint64_t *seed)
{
    size_t bytes = draw_bytes(seed) + 1, kept = bytes < block->bytes ? bytes : block->bytes;

    block->start = culet_realloc(block->start, bytes);
    CHECK(block->start, "no memory");
    verify(block, kept);
    block->bytes = bytes;
    sign(block, check_random(seed));
}

static void drop(struct block *block)
{
    verify(block, block->bytes);
    culet_free(block->start);
    block->start = NULL;
}

/* Exchanges a block for one that another thread left. */
static void pass_on(struct block *block, uint64_t *seed)
{
    struct block taken = {.start = NULL};

    pthread_mutex_lock(&mailbox_lock);
    if (mailbox_count < MAILBOX / 2) {
        mailbox[mailbox_count++] = *block;
        block->start = NULL;
    } else {
        unsigned i = check_random(seed) % mailbox_count;
        taken = mailbox[i];
        mailbox[i] = *block;
        *block = taken;
    }
    pthread_mutex_unlock(&mailbox_lock);
    if (block->start)
        verify(block, block->bytes);
}

/* An ending thread passes its blocks on, as far as there is room. */
static void bequeath(struct block *block)
{
    if (!block->start)
        return;
    pthread_mutex_lock(&mailbox_lock);
    if (mailbox_count < MAILBOX) {
        mailbox[mailbox_count++] = *block;
        block->start = NULL;
    }
    pthread_mutex_unlock(&mailbox_lock);
    if (block->start)
        drop(block);
}

struct life {
    uint64_t seed;
    unsigned steps;
};

static void *live(void *data)
{
    const struct life *life = data;
    struct block held[HELD] = {{.start = NULL}};
    uint64_t seed = life->seed;

    for (unsigned i = 0; i < life->steps; i++) {
        struct block *block = &held[check_random(&seed) % HELD];
        unsigned what = check_random(&seed) % 100;
        if (!block->start)
            *block = make(&seed);
        else if (what < 20)
            resize(block, &seed);
        else if (what < 40)
            pass_on(block, &seed);
        else
            drop(block);
        if (i % trim_every == trim_every - 1)
            culet_malloc_trim(check_random(&seed) % 2 ? 0 : 1 << 20);
        if (i % 997 == 996)
            CHECK(culet_mallinfo2().arena > 0, "a heap without memory");
    }
    for (unsigned i = 0; i < HELD; i++)
        bequeath(&held[i]);
    return NULL;
}

static void check_empty(void)
{
    struct heap_counts counts;

    culet_heap_check();
    count_heap(&counts);
    CHECK_EQUAL(counts.used_bytes, 0);
    CHECK(counts.threads <= 1, "%zu threads beside this one", counts.threads - 1);
    CHECK_EQUAL(counts.large.large + counts.large.huge, 0);
    culet_malloc_trim(0);
    count_heap(&counts);
    CHECK_EQUAL(counts.pages.used, 0);
    culet_heap_check();
}

/* `generations` times THREADS threads; a thread that ends is replaced, so that always as many live. */
static void run_threads(unsigned generations, unsigned steps)
{
    pthread_t thread[THREADS];
    static struct life life[THREADS];

    for (unsigned g = 0; g < generations; g++) {
        for (unsigned i = 0; i < THREADS; i++) {
            if (g)
                pthread_join(thread[i], NULL);
            life[i] = (struct life){.seed = g * THREADS + i + 1, .steps = steps / 2 + steps / THREADS * i};
            CHECK(pthread_create(&thread[i], NULL, live, &life[i]) == 0, "no thread");
        }
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    while (mailbox_count)
        drop(&mailbox[--mailbox_count]);
}

TEST(threads_share_blocks_and_nothing_is_lost)
{
    run_threads(scaled(4), 12000);
    check_empty();
}

TEST(threads_trim_while_others_allocate)
{
    trim_every = 20;
    run_threads(scaled(2), 3000);
    check_empty();
}

TEST(short_lives)
{
    run_threads(scaled(60), 150);
    check_empty();
}

/* One class, few blocks: requests, frees and collections of the same units meet as often as they can. */
static _Atomic(unsigned char *) slot[64];

static void *meet(void *data)
{
    uint64_t seed = (uintptr_t)data;

    for (unsigned i = 0, count = scaled(30000); i < count; i++) {
        unsigned char *mine = NULL;
        if (check_random(&seed) % 2) {
            mine = culet_malloc(1000);
            CHECK(mine, "no memory");
            memset(mine, (int)(seed & 0xff), 1000);
            mine[1] = mine[999];
        }
        unsigned char *old = atomic_exchange(&slot[check_random(&seed) % 64], mine);
        if (!old)
            continue;
        for (unsigned at = 1; at < 1000; at += 27)
            if (old[at] != old[0])
                CHECK(false, "byte %u of a block was changed", at);
        memset(old, 0, 1000);
        culet_free(old);
    }
    return NULL;
}

TEST(threads_meet_in_one_class)
{
    pthread_t thread[THREADS];

    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, meet, (void *)(i + 1)) == 0, "no thread");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (unsigned i = 0; i < 64; i++)
        culet_free(slot[i]);
    check_empty();
}

CHECK_MAIN
