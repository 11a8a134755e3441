/* Everything at once: threads under a common lock and threads in parallel allocate blocks, fill them with a pattern, and
 * pass them through rings to other threads, which check the pattern, free them or change their size. Threads end and
 * others go on with their blocks; the scavenger works; one thread trims and reads statistics, one forks. Each child
 * checks and frees the blocks of all threads. At the end everything is freed, and goes back without a trim.
 *
 * STRESS_MS: how long each test runs (default 1000). STRESS_SEED: the random numbers (default 1; 0: others each time).
 * The random numbers of a thread follow from the seed; the blocks that it meets depend on the other threads. */
#define _GNU_SOURCE
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "heap_counts.h"
#include "lock.h"
#include "os.h"
#include "pages.h"
#include "reclaim_policy.h"
#include "resident.h"
#include "wakeup.h"

#include <pthread.h>
#include <sched.h>
#include <sys/random.h>
#include <time.h>

#define WORKERS_MOST 200
#define HELD 300
#define RINGS 6
#define RING 64
#define SIZES 4
#define CHILD_SECONDS 200

/* FULL: has a block whose every byte is written. BUSY: a thread works on it. */
enum state { EMPTY, BUSY, FULL };

struct place {
    _Atomic unsigned state;
    unsigned char *start;
    size_t bytes;
    uint64_t tag;
};

struct worker {
    uint64_t seed;
    bool locked; /* works under `common` only */
    pthread_t thread;
    unsigned phase;          /* steps until it prefers other sizes */
    bool shrink;             /* makes no new blocks in this phase */
    size_t sizes[SIZES];     /* that it prefers */
    struct place held[HELD]; /* stay when the thread ends */
    _Atomic bool ended;
};

struct ring {
    struct place place[RING];
};

/* What a test varies. */
struct load {
    size_t bytes_most;  /* of most blocks */
    unsigned large_per; /* one block of so many is larger than 32 KiB; 0: none */
    bool all_locked;
    bool scavenger;
};

static struct worker workers[WORKERS_MOST];
static unsigned worker_count;
static struct ring rings[RINGS];
static pthread_mutex_t common = PTHREAD_MUTEX_INITIALIZER; /* as Ruby's GVL */
static struct load load;
static uint64_t seed;
static _Atomic bool done;
static _Atomic unsigned long generations, forked, passed;

static unsigned long setting(const char *name, unsigned long otherwise)
{
    const char *given = getenv(name);

    return given ? strtoul(given, NULL, 10) : otherwise;
}

/* ---- patterns ---- */

static unsigned char byte_at(const struct place *place, size_t i)
{
    return (unsigned char)((place->tag >> i % 8 * 8) + i / 8);
}

/* All of a small block, the ends and some of the middle of a large one. */
static size_t next_byte(size_t bytes, size_t i)
{
    return i < 4096 || i + 64 >= bytes ? i + 1 : i + 997 + 64 < bytes ? i + 997 : bytes - 64;
}

static void fill(struct place *place, uint64_t tag)
{
    place->tag = tag;
    for (size_t i = 0; i < place->bytes; i = next_byte(place->bytes, i))
        place->start[i] = byte_at(place, i);
}

/* Checks the first `bytes`, which were written when the block had `place->bytes`. */
static void check(const struct place *place, size_t bytes)
{
    for (size_t i = 0; i < bytes; i = next_byte(place->bytes, i))
        if (place->start[i] != byte_at(place, i))
            CHECK(false, "seed %lu: byte %zu of a block of %zu at %p was changed", (unsigned long)seed, i, place->bytes,
                  (void *)place->start);
    atomic_fetch_add_explicit(check_counter, 1, memory_order_relaxed);
}

static void check_zeros(const unsigned char *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (block[i])
            CHECK(false, "seed %lu: calloc's byte %zu of %zu is %u", (unsigned long)seed, i, bytes, block[i]);
}

/* ---- places ---- */

/* A forked child sees the state before it sees what the thread does with the block. */
static bool occupy(struct place *place, unsigned from)
{
    unsigned state = from;
    bool occupied = atomic_compare_exchange_strong(&place->state, &state, BUSY);

    atomic_thread_fence(memory_order_seq_cst);
    return occupied;
}

static void leave(struct place *place, unsigned state)
{
    atomic_store_explicit(&place->state, state, memory_order_release);
}

static size_t draw_bytes(const size_t *sizes, uint64_t *random)
{
    if (load.large_per && check_random(random) % load.large_per == 0)
        return CULET_SMALL_MAX + check_random(random) % (check_random(random) % 8 ? 200000 : 2 * CULET_LARGE_MAX);
    return check_random(random) % 4 ? sizes[check_random(random) % SIZES] : 1 + check_random(random) % load.bytes_most;
}

static void make(struct place *place, const size_t *sizes, uint64_t *random)
{
    unsigned how = check_random(random) % 10;
    size_t alignment = CULET_ALIGNMENT;

    place->bytes = draw_bytes(sizes, random);
    if (how < 7) {
        place->start = culet_malloc(place->bytes);
    } else if (how < 9) {
        place->start = culet_calloc(1, place->bytes);
        if (place->start)
            check_zeros(place->start, place->bytes);
    } else {
        alignment = (size_t)32 << check_random(random) % 8;
        place->start = culet_memalign(alignment, place->bytes);
    }
    CHECK(place->start && (uintptr_t)place->start % alignment == 0, "%p for %zu bytes aligned to %zu",
          (void *)place->start, place->bytes, alignment);
    fill(place, check_random(random));
}

static void resize(struct place *place, const size_t *sizes, uint64_t *random)
{
    size_t bytes = draw_bytes(sizes, random);

    check(place, place->bytes);
    place->start = culet_realloc(place->start, bytes);
    CHECK(place->start, "no memory for %zu bytes", bytes);
    check(place, bytes < place->bytes ? bytes : place->bytes);
    place->bytes = bytes;
    fill(place, check_random(random));
}

static void drop(struct place *place)
{
    check(place, place->bytes);
    place->start[0] = (unsigned char)~place->start[0]; /* a second user of the block would notice */
    culet_free(place->start);
}

static void copy(struct place *to, const struct place *from)
{
    to->start = from->start;
    to->bytes = from->bytes;
    to->tag = from->tag;
}

/* Puts the block into a ring if there is room. Both places are the thread's. */
static bool send(const struct place *from, uint64_t *random)
{
    struct place *to = &rings[check_random(random) % RINGS].place[check_random(random) % RING];

    if (!occupy(to, EMPTY))
        return false;
    copy(to, from);
    leave(to, FULL);
    atomic_fetch_add_explicit(&passed, 1, memory_order_relaxed);
    return true;
}

static bool receive(struct place *to, uint64_t *random)
{
    struct place *from = &rings[check_random(random) % RINGS].place[check_random(random) % RING];

    if (!occupy(from, FULL))
        return false;
    copy(to, from);
    leave(from, EMPTY);
    return true;
}

/* ---- workers ---- */

/* A place with a block: the block is sent, resized or freed. */
static void change(struct place *place, const size_t *sizes, bool shrink, uint64_t *random)
{
    unsigned what = check_random(random) % 100;
    bool full = false;

    if (!occupy(place, FULL))
        CHECK(false, "another thread works on a place of this one");
    if (what >= 35 && what < 50 && !shrink) {
        resize(place, sizes, random);
        full = true;
    } else if (what >= 35 || !send(place, random)) {
        drop(place);
    }
    leave(place, full ? FULL : EMPTY);
}

/* An empty place gets a block out of a ring, or a new one. */
static void renew(struct place *place, const size_t *sizes, bool shrink, uint64_t *random)
{
    unsigned what = check_random(random) % 8;
    bool full = true;

    if (!occupy(place, EMPTY))
        CHECK(false, "another thread works on a place of this one");
    if (what < 4 && receive(place, random)) {
        if (what == 0)
            resize(place, sizes, random);
        else if (what < 3 || shrink)
            full = false;
    } else if (!shrink) {
        make(place, sizes, random);
    } else {
        leave(place, EMPTY);
        return;
    }
    if (!full)
        drop(place);
    leave(place, full ? FULL : EMPTY);
}

/* Half of the sizes are those of all threads. */
static void draw_sizes(size_t *sizes, uint64_t *random)
{
    static const size_t shared[] = {16, 48, 64, 100, 200, 640, 1024, 3000};

    for (unsigned i = 0; i < SIZES; i++)
        sizes[i] = i % 2 ? 1 + check_random(random) % load.bytes_most
                         : 1 + (shared[check_random(random) % 8] - 1) % load.bytes_most;
}

static void step(struct worker *self, uint64_t *random)
{
    if (self->phase-- == 0) {
        self->phase = 100 + (unsigned)(check_random(random) % 3000);
        self->shrink = check_random(random) % 3 == 0;
        draw_sizes(self->sizes, random);
    }
    struct place *place = &self->held[check_random(random) % HELD];
    if (atomic_load_explicit(&place->state, memory_order_relaxed) == FULL)
        change(place, self->sizes, self->shrink, random);
    else
        renew(place, self->sizes, self->shrink, random);
}

static void *work(void *data)
{
    struct worker *self = data;
    uint64_t random = self->seed;
    unsigned turns = 1 + (unsigned)(check_random(&random) % 80);

    while (turns-- && !atomic_load(&done)) {
        if (self->locked)
            pthread_mutex_lock(&common);
        for (uint64_t steps = check_random(&random) % 300; steps; steps--)
            step(self, &random);
        if (self->locked)
            pthread_mutex_unlock(&common);
        if (check_random(&random) % 8 == 0)
            usleep((unsigned)(check_random(&random) % 2000));
        else
            sched_yield();
    }
    atomic_store(&self->ended, true);
    return NULL;
}

/* A thread goes on with what the previous one of its number held. */
static void begin(struct worker *worker)
{
    worker->seed = seed * 1000003 + atomic_fetch_add(&generations, 1);
    worker->phase = 0;
    atomic_store(&worker->ended, false);
    CHECK(pthread_create(&worker->thread, NULL, work, worker) == 0, "no thread");
}

/* Checks and frees every block that no thread works on. */
static void drop_all(void)
{
    for (unsigned w = 0; w < worker_count; w++)
        for (unsigned i = 0; i < HELD; i++)
            if (occupy(&workers[w].held[i], FULL))
                drop(&workers[w].held[i]);
    for (unsigned r = 0; r < RINGS; r++)
        for (unsigned i = 0; i < RING; i++)
            if (occupy(&rings[r].place[i], FULL))
                drop(&rings[r].place[i]);
}

/* ---- beside the workers ---- */

static void *trim_and_count(void *unused)
{
    static struct culet_stats stats;
    uint64_t random = seed + 1;

    while (!atomic_load(&done)) {
        if (check_random(&random) % 2)
            culet_malloc_trim(check_random(&random) % 2 ? 0 : 1 << 20);
        CHECK(culet_stats(&stats, sizeof stats) == 0, "no statistics");
        CHECK(stats.heap_bytes == stats.segments * CULET_SEGMENT_BYTES, "%lu bytes in %lu segments",
              (unsigned long)stats.heap_bytes, (unsigned long)stats.segments);
        for (unsigned klass = 0; klass < stats.classes; klass++) {
            const struct culet_stats_class *c = &stats.class[klass];
            CHECK(!c->cached && (c->slabs != 0) == (c->used + c->free != 0), "size %lu: %lu slabs of %lu blocks",
                  (unsigned long)c->block_bytes, (unsigned long)c->slabs, (unsigned long)(c->used + c->free));
        }
        CHECK(culet_mallinfo2().arena > 0, "a heap without memory");
        usleep((unsigned)(check_random(&random) % 10000));
    }
    return unused;
}

#ifndef __SANITIZE_THREAD__ /* it does not support forks of a process with threads */
static size_t live_blocks(void)
{
    struct heap_counts counts;
    size_t live;

    count_heap(&counts);
    live = counts.large.large + counts.large.huge;
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        live += counts.bins[klass].live;
    return live;
}

static void be_child(uint64_t random)
{
    struct heap_counts counts;
    size_t working = 2 * worker_count; /* each may have had one block in work, and a second one in a realloc */

    alarm(CHILD_SECONDS);
#ifdef __SANITIZE_ADDRESS__
    /* The sanitizer's pthread_create takes a lock that another thread may have held when this process was forked. */
    atomic_store(&culet_scavenger_state, CULET_SCAVENGER_UNAVAILABLE);
#endif
    culet_heap_check();
    worker_count++; /* one more, which the child's thread is */
    atomic_store(&done, false);
    struct worker *self = &workers[worker_count - 1];
    for (unsigned i = 0; i < 500; i++)
        step(self, &random);
    drop_all();
    culet_heap_check();
    CHECK(live_blocks() <= working, "seed %lu: %zu blocks are left of at most %zu", (unsigned long)seed, live_blocks(),
          working);
    culet_malloc_trim(0);
    culet_heap_check();
    count_heap(&counts);
    CHECK(counts.pages.dirty == 0, "%zu pages are dirty after a trim", counts.pages.dirty);
    CHECK(live_blocks() || !counts.pages.used, "%zu pages are used by no block", counts.pages.used);
    _exit(0);
}

static void *fork_now_and_then(void *unused)
{
    uint64_t random = seed + 2;

    while (!atomic_load(&done)) {
        pid_t child = fork();
        if (child == 0)
            be_child(random);
        check_child(child);
        atomic_fetch_add(&forked, 1);
        usleep((unsigned)(check_random(&random) % 20000));
    }
    return unused;
}
#endif

/* ---- the end ---- */

static size_t resident_in_segments(void)
{
    size_t resident = 0;

    culet_lock(&culet_pages_lock);
    for (uint32_t i = 0; culet_pages_segment(i) != CULET_PAGES_END; i++)
        if (culet_pages_segment(i))
            resident += resident_bytes(culet_pages_segment(i), CULET_SEGMENT_BYTES);
    culet_unlock(&culet_pages_lock);
    return resident;
}

/* Nothing is live. The scavenger returns all but a few pages, without a request or a trim. */
static void check_scavenged(void)
{
    struct heap_counts counts;
    size_t floor = CULET_IDLE_PAGES_MIN * CULET_PAGE;

    CHECK(culet_wakeup_scavenger_runs(), "there is no scavenger");
    for (unsigned i = 0; i < 3000 && resident_in_segments() > floor; i++)
        usleep(10000);
    count_heap(&counts);
    CHECK(resident_in_segments() <= floor, "seed %lu: %zu bytes are resident; %zu pages are used, %zu dirty",
          (unsigned long)seed, resident_in_segments(), counts.pages.used, counts.pages.dirty);
    CHECK(counts.pages.huge_cached <= CULET_IDLE_PAGES_MIN, "%zu pages are cached", counts.pages.huge_cached);
    CHECK(counts.pages.purged_bytes > 0, "nothing was ever returned");
}

static void check_end(void)
{
    struct heap_counts counts;

    culet_heap_check();
    count_heap(&counts);
    CHECK_EQUAL(counts.used_bytes, 0);
    CHECK(counts.threads <= 1, "%zu threads are counted", counts.threads);
    if (load.scavenger)
        check_scavenged();
    culet_malloc_trim(0);
    CHECK_EQUAL(resident_in_segments(), 0);
    count_heap(&counts);
    CHECK_EQUAL(counts.pages.used + counts.pages.dirty + counts.pages.huge_cached, 0);
    culet_heap_check();
}

static uint64_t milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void choose_seed(void)
{
    seed = setting("STRESS_SEED", 1);
    if (seed == 0)
        CHECK(getrandom(&seed, 4, 0) == 4, "no random number");
    printf("# STRESS_SEED=%lu\n", (unsigned long)seed);
    fflush(stdout);
}

/* On a busy machine the time is over before any of it. */
static bool has_happened(void)
{
    bool is_forked = true;

#ifndef __SANITIZE_THREAD__
    is_forked = atomic_load(&forked) > 0;
#endif
    return is_forked && atomic_load(&passed) > 0 && atomic_load(&generations) >= worker_count + 3;
}

static void run(struct load given)
{
    pthread_t trimmer;
    uint64_t end = milliseconds() + setting("STRESS_MS", 1000);

    load = given;
    choose_seed();
    culet_free(culet_malloc(1));
    atomic_store(&culet_scavenger_state, load.scavenger ? CULET_SCAVENGER_REQUESTED : CULET_SCAVENGER_UNAVAILABLE);
    worker_count = culet_os_processors() * 3 < 6 ? 6 : culet_os_processors() * 3;
    if (worker_count > WORKERS_MOST - 1)
        worker_count = WORKERS_MOST - 1;
    for (unsigned i = 0; i < worker_count; i++) {
        workers[i].locked = load.all_locked || i % 2;
        begin(&workers[i]);
    }
    CHECK(pthread_create(&trimmer, NULL, trim_and_count, NULL) == 0, "no thread");
#ifndef __SANITIZE_THREAD__
    pthread_t forker;
    CHECK(pthread_create(&forker, NULL, fork_now_and_then, NULL) == 0, "no thread");
#endif
    while (milliseconds() < end || !has_happened()) {
        for (unsigned i = 0; i < worker_count; i++)
            if (atomic_load(&workers[i].ended)) {
                pthread_join(workers[i].thread, NULL);
                begin(&workers[i]);
            }
        usleep(1000);
    }
    atomic_store(&done, true);
    for (unsigned i = 0; i < worker_count; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_join(trimmer, NULL);
#ifndef __SANITIZE_THREAD__
    pthread_join(forker, NULL);
    CHECK(atomic_load(&forked) > 0, "nobody forked");
#endif
    CHECK(atomic_load(&generations) > worker_count, "no thread ended");
    CHECK(atomic_load(&passed) > 0, "no block was passed");
    printf("# %lu threads, %lu blocks passed, %lu forks\n", atomic_load(&generations), atomic_load(&passed),
           atomic_load(&forked));
    drop_all();
    check_end();
}

TEST(threads_in_parallel_and_threads_under_a_lock)
{
    run((struct load){.bytes_most = 1500, .large_per = 300, .scavenger = true});
}

/* Few classes: requests, frees, collections and moved slabs meet in the same units. */
TEST(blocks_of_few_sizes)
{
    run((struct load){.bytes_most = 64, .scavenger = true});
}

TEST(blocks_of_all_sizes)
{
    run((struct load){.bytes_most = CULET_SMALL_MAX, .large_per = 20, .scavenger = true});
}

TEST(threads_under_one_lock)
{
    run((struct load){.bytes_most = 1500, .large_per = 300, .all_locked = true, .scavenger = true});
}

/* The kernel has refused the thread: the heap returns memory in its requests, and at the ends of threads. */
TEST(a_heap_without_a_scavenger)
{
    run((struct load){.bytes_most = 1500, .large_per = 1000});
}

CHECK_MAIN
