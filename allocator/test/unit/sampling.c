/* Samples of the memory profile: which requests are samples, claims that are given back, and sampled blocks. */
#include "sampling.h"

#include "../../../sampler/core/random.h"
#include "../../../sampler/core/samples.h"
#include "bin.h"
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "heap_counts.h"
#include "os.h"
#include "pagemap.h"
#include "probes.h"
#include "profiler.h"
#include "purge.h"
#include "slab.h"
#include "threads.h"
#include "wakeup.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>

/* ---- distances: drawn by the tests, so that they know what was drawn ---- */

uint64_t __wrap_culet_profile_distance(void);

static _Atomic uint64_t seed = 1;
static _Atomic double mean = 4096;   /* bytes */
static uint64_t always;              /* not 0: each distance */
static _Thread_local uint64_t drawn; /* the last distance */
static _Thread_local unsigned draws;

static uint64_t random_word(void)
{
    uint64_t z = atomic_fetch_add(&seed, UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static unsigned below(unsigned bound)
{
    return (unsigned)(random_word() >> 32) % bound;
}

uint64_t __wrap_culet_profile_distance(void)
{
    double uniform = ((double)(random_word() >> 11) + 1) / 9007199254740992.0;

    draws++;
    drawn = always ? always : 1 + (uint64_t)(-mean * log(uniform));
    return drawn;
}

static void start(double bytes)
{
    static bool is_set_up;

    mean = bytes;
    CHECK(culet_heap_state() != CULET_DORMANT, "the heap is dormant");
    if (!is_set_up)
        culet_profiler_setup();
    is_set_up = true;
    CHECK(culet_profile_api.start((uint64_t)bytes), "no memory for the profile");
    CHECK(culet_profile_api.running(), "it does not run");
}

static void stop(void)
{
    culet_profile_api.stop();
    CHECK(!culet_profile_api.running(), "it runs");
    culet_heap_check();
}

/* ---- what the profile has ---- */

struct sums {
    double samples, blocks, bytes;
};

struct text {
    char *start;
    size_t length, room;
};

static bool append(void *data, const char *part, size_t length)
{
    struct text *text = data;

    if (text->length + length + 1 > text->room) {
        text->room = 2 * (text->length + length + 1);
        text->start = realloc(text->start, text->room);
    }
    memcpy(text->start + text->length, part, length);
    text->length += length;
    text->start[text->length] = 0;
    return true;
}

/* Adds up a view of all sites. */
static struct sums view(char letter)
{
    struct text text = {NULL, 0, 0};
    struct sums all = {0, 0, 0};
    uint64_t lines = 0;

    CHECK(culet_profile_api.write(append, &text, &lines), "not written");
    for (char *line = strtok(text.start, "\n"); line; line = strtok(NULL, "\n")) {
        char kind, name;
        unsigned long stack, label, type;
        int at = 0, next = 0;
        double samples, blocks, bytes, variance;
        if (sscanf(line, "S %c %lu %lu %lu%n", &kind, &stack, &label, &type, &at) != 4)
            continue;
        for (; sscanf(line + at, " %c %lf %lf %lf %lf%n", &name, &samples, &blocks, &bytes, &variance, &next) == 5;
             at += next)
            if (name == letter)
                all.samples += samples, all.blocks += blocks, all.bytes += bytes;
    }
    free(text.start);
    return all;
}

static struct culet_large *large_of(void *block)
{
    uintptr_t entry = culet_pagemap_entry((uintptr_t)block);

    return culet_entry_is_slab(entry) || culet_entry_is_checked_slab(entry)
               ? NULL
               : (struct culet_large *)culet_entry_span(entry);
}

static bool sampled(void *block)
{
    const struct culet_large *large = large_of(block);

    return large && large->sample;
}

static void *get(size_t bytes)
{
    void *block = culet_malloc(bytes);

    CHECK(block, "no memory");
    return block;
}

static void *get_of(unsigned klass)
{
    size_t size = culet_classes[klass].size;
    void *block = klass > CULET_SIZES ? culet_calloc(1, size) : culet_malloc(size);

    CHECK(block, "no memory");
    CHECK_EQUAL(culet_malloc_usable_size(block), size);
    return block;
}

/* For a heap that counts as large, so that calloc has classes of its own. */
static void pretend_large(void)
{
    culet_free(get(1));
    atomic_store(&culet_scavenger_state, CULET_SCAVENGER_UNAVAILABLE);
    atomic_store(&culet_wakeup_large, true);
}

static void check_all_free(void)
{
    struct heap_counts counts;

    culet_heap_check();
    count_heap(&counts);
    CHECK_EQUAL(counts.used_bytes, 0);
}

/* ---- which requests are samples ---- */

#define KEPT 300

/* Requests of one class, freed at once or later, with purges in between: a sample comes after as many requests as was
 * drawn for it. */
static void count_class(unsigned klass, unsigned samples, unsigned purge_in)
{
    static void *kept[KEPT];
    size_t size = culet_classes[klass].size;
    uint64_t next = 0, since = 0;
    unsigned found = 0;

    mean = 60.0 * (double)size;
    memset(kept, 0, sizeof kept);
    while (found < samples) {
        unsigned before = draws, slot = below(3) ? 0 : below(KEPT);
        culet_free(kept[slot]);
        kept[slot] = get_of(klass);
        since++;
        if (sampled(kept[slot])) {
            if (found++)
                CHECK_EQUAL(since, next);
            CHECK(draws > before, "nothing was drawn");
            next = drawn / size + 1;
            since = 0;
        } else if (found) {
            CHECK(since < next, "no sample at request %lu of class %u", (unsigned long)next, klass);
            CHECK_EQUAL(draws, before);
        }
        if (purge_in && !below(purge_in))
            culet_malloc_trim(0);
    }
    for (unsigned i = 0; i < KEPT; i++)
        culet_free(kept[i]);
}

TEST(each_class_has_its_samples_at_the_requests_that_were_drawn)
{
    pretend_large();
    start(4096);
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++)
        count_class(klass, 12, 0);
    stop();
    CHECK_EQUAL((uint64_t)view('l').bytes, 0);
    check_all_free();
}

TEST(purges_lose_no_request)
{
    pretend_large();
    start(4096);
    for (unsigned klass = 1; klass < CULET_CLASSES; klass += 7)
        count_class(klass, 12, 20);
    stop();
    check_all_free();
}

TEST(one_block_over_and_over_is_counted)
{
    uint64_t since = 0;
    unsigned found = 0;

    start(64.0 * 500);
    do {
        uint64_t expected = found ? drawn / 64 + 1 : 0;
        void *block = get(64);
        since++;
        if (sampled(block)) {
            if (found++)
                CHECK_EQUAL(since, expected);
            since = 0;
        }
        culet_free(block);
    } while (found < 50);
    stop();
}

static void *take_some(void *data)
{
    void **block = data;

    for (unsigned i = 0; i < 100; i++)
        block[i] = get(48);
    return NULL;
}

static void *free_some(void *data)
{
    void **block = data;

    for (unsigned i = 0; i < 100; i++)
        culet_free(block[i]);
    return NULL;
}

TEST(slabs_that_other_arenas_adopt_keep_every_block)
{
    void *block[100], *mine[1000];

    start(1 << 20);
    for (unsigned round = 0; round < 200; round++) {
        run_elsewhere(take_some, block);
        culet_heap_check();
        if (round % 2)
            free_some(block);
        else
            run_elsewhere(free_some, block);
        for (unsigned i = 0; i < 1000; i++)
            mine[i] = get(48);
        for (unsigned i = 0; i < 1000; i++)
            culet_free(mine[i]);
        culet_heap_check();
    }
    stop();
    check_all_free();
}

static double allocated_bytes;

/* Requests of all sizes. Returns the bytes of those that are kept. */
static double allocate_much(void **kept, unsigned count, unsigned requests)
{
    double live = 0;

    for (unsigned i = 0; i < count; i++)
        kept[i] = NULL;
    for (unsigned i = 0; i < requests; i++) {
        unsigned slot = below(count), size = below(8) ? below(1024) : below(8) ? below(32768) : below(300000);
        live -= kept[slot] ? (double)culet_malloc_usable_size(kept[slot]) : 0;
        culet_free(kept[slot]);
        kept[slot] = i % 3 ? culet_malloc(size) : culet_calloc(1, size);
        allocated_bytes += (double)culet_malloc_usable_size(kept[slot]);
        live += (double)culet_malloc_usable_size(kept[slot]);
        /* Of large blocks what is resident counts. */
        memset(kept[slot], 1, culet_malloc_usable_size(kept[slot]));
    }
    return live;
}

/* The deviation of an estimate is at most the root of mean * bytes, plus the bytes of one block. */
static void check_estimate(const char *what, double estimate, double bytes)
{
    double deviation = sqrt(mean * bytes);

    CHECK(fabs(estimate - bytes) < 4 * deviation, "%s: %.0f estimated of %.0f, deviation %.0f", what, estimate, bytes,
          deviation);
}

TEST(estimates_agree_with_what_was_allocated)
{
    static void *kept[2000];

    start(16384);
    double live = allocate_much(kept, 2000, 100000);
    check_estimate("allocated", view('a').bytes, allocated_bytes);
    check_estimate("live", view('l').bytes, live);
    for (unsigned i = 0; i < 2000; i++)
        culet_free(kept[i]);
    CHECK_EQUAL((uint64_t)view('l').samples, 0);
    CHECK_EQUAL((uint64_t)view('l').bytes, 0);
    stop();
    check_all_free();
}

/* ---- sampled blocks ---- */

static void fill(unsigned char *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        block[i] = (unsigned char)(i * 7 + 1);
}

static void check_filled(const unsigned char *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (block[i] != (unsigned char)(i * 7 + 1))
            CHECK(false, "byte %zu of %zu is changed", i, bytes);
}

TEST(sampled_blocks_are_as_large_as_others)
{
    always = 1;
    start(1);
    for (size_t bytes = 1; bytes <= CULET_SMALL_MAX; bytes += bytes < 1100 ? 1 : 311) {
        unsigned char *block = culet_malloc(bytes);
        size_t size = culet_classes[culet_size_class(bytes)].size;
        CHECK(sampled(block), "%zu bytes are no sample", bytes);
        CHECK_EQUAL(culet_malloc_usable_size(block), size);
        memset(block, 0xee, size);
        if (bytes % 2)
            culet_free_sized(block, bytes);
        else
            culet_free(block);
        block = culet_calloc(1, bytes);
        CHECK(sampled(block), "%zu bytes are no sample", bytes);
        for (size_t i = 0; i < bytes; i++)
            if (block[i])
                CHECK(false, "byte %zu of %zu is not zero", i, bytes);
        culet_free(block);
    }
    stop();
    check_all_free();
}

TEST(sampled_blocks_are_aligned)
{
    always = 1;
    start(1);
    for (size_t alignment = 16; alignment <= 1 << 21; alignment *= 2)
        for (size_t bytes = 1; bytes <= 100000; bytes = bytes * 5 + 3) {
            void *block = culet_aligned_alloc(alignment, bytes);
            CHECK(sampled(block), "%zu bytes are no sample", bytes);
            CHECK(!((uintptr_t)block & (alignment - 1)), "not aligned to %zu", alignment);
            memset(block, 1, bytes);
            culet_free_aligned_sized(block, alignment, bytes);
        }
    stop();
    check_all_free();
}

TEST(realloc_keeps_the_bytes_of_sampled_blocks)
{
    always = 1;
    start(1);
    for (size_t bytes = 1; bytes < 3000000; bytes = bytes * 3 / 2 + 1)
        for (size_t other = 1; other < 3000000; other = other * 5 / 2 + 1) {
            unsigned char *block = culet_malloc(bytes), *moved;
            size_t both = bytes < other ? bytes : other;
            fill(block, both);
            moved = culet_realloc(block, other);
            CHECK(moved && culet_malloc_usable_size(moved) >= other, "too small");
            check_filled(moved, both);
            culet_free(moved);
        }
    CHECK_EQUAL((uint64_t)view('l').samples, 0);
    stop();
    check_all_free();
}

TEST(a_small_sample_stays_where_a_block_of_a_slab_would)
{
    always = 1;
    start(1);
    unsigned char *block = get(1000);
    CHECK(culet_realloc(block, 1008) == block, "it grew within its class, and moved");
    CHECK(culet_realloc(block, 800) == block, "it shrank by less than a quarter, and moved");
    CHECK(culet_realloc(block, 1009) != block, "it outgrew its class, and stayed");
    stop();
}

TEST(a_large_block_that_grows_in_place_is_an_allocation_of_its_new_size)
{
    double allocated = 100000;

    always = 1;
    start(1);
    void *block = get(100000);
    allocated = (double)culet_malloc_usable_size(block);
    for (size_t bytes = 200000; bytes <= 6000000; bytes += 100000) {
        CHECK((block = culet_realloc(block, bytes)), "no memory");
        CHECK(sampled(block), "no sample");
        allocated += (double)culet_malloc_usable_size(block);
        CHECK_EQUAL((uint64_t)view('l').samples, 1);
        memset(block, 1, bytes);
        CHECK_EQUAL((uint64_t)view('l').bytes, culet_malloc_usable_size(block));
    }
    CHECK_EQUAL((uint64_t)view('a').bytes, (uint64_t)allocated);
    culet_free(block);
    CHECK_EQUAL((uint64_t)view('l').samples, 0);
    stop();
    check_all_free();
}

TEST(a_block_that_is_resized_after_the_end_is_no_sample)
{
    always = 1;
    start(1);
    void *block = get(100000), *other = get(100000);
    stop();
    block = culet_realloc(block, 300000);
    CHECK(!sampled(block), "it is a sample");
    CHECK_EQUAL((uint64_t)view('l').samples, 1);
    culet_free(other);
    CHECK_EQUAL((uint64_t)view('l').samples, 0);
    CHECK(!sampled(get(48)) && !sampled(get(48000)) && !sampled(get(4800000)), "sampled after the end");
}

/* ---- misuses ---- */

/* Runs it in a child, which must print a line that has the text, and end by the signal; 0: by exit status 0. */
static void expect_end(void (*run)(void), int signal, const char *text)
{
    char got[1024] = {0};
    int ends[2], status;

    CHECK(pipe(ends) == 0, "pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        run();
        _exit(0);
    }
    close(ends[1]);
    for (size_t length = 0; length < sizeof got - 1;) {
        ssize_t more = read(ends[0], got + length, sizeof got - 1 - length);
        if (more <= 0)
            break;
        length += (size_t)more;
    }
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child, "waitpid");
    CHECK((status & 0x7f) == signal && strstr(got, text), "status %x, '%s' has no '%s'", (unsigned)status, got, text);
}

static void expect_abort(void (*run)(void), const char *text)
{
    expect_end(run, SIGABRT, text);
}

static char *victim;

static void free_twice(void)
{
    culet_free(victim);
    culet_free(victim);
}

static void free_inside(void)
{
    culet_free(victim + 16);
}

static void free_misaligned(void)
{
    culet_free(victim + 3);
}

static void free_past_the_end(void)
{
    culet_free(victim + 320);
}

static void resize_freed(void)
{
    culet_free(victim);
    culet_realloc(victim, 1000);
}

static void free_wrong_size(void)
{
    culet_free_sized(victim, 100000);
}

TEST(misuses_of_sampled_blocks_are_reported_as_of_others)
{
    always = 1;
    start(1);
    victim = get(300);
    expect_abort(free_twice, "culet: double free of 0x");
    expect_abort(free_twice, ": the 304-byte block 0x");
    expect_abort(free_twice, " (size class 304) is already free\n");
    expect_abort(free_inside, "it points 16 bytes into the 304-byte block 0x");
    expect_abort(free_inside, " (size class 304), not at its start\n");
    expect_abort(free_misaligned, "misaligned, it points 3 bytes into the 304-byte block 0x");
    expect_abort(free_past_the_end, " (size class 304), past its end\n");
    expect_abort(resize_freed, "culet: realloc of 0x");
    expect_end(free_wrong_size, 0, "called with a size of 100000 for a block of 304; freed nevertheless");
    victim = get(20000);
    expect_abort(free_twice, "-byte block 0x");
    expect_abort(free_twice, " is already free\n");
    expect_abort(free_inside, "it points 16 bytes into the 20992-byte block 0x");
    stop();
}

/* The second free of a block that was claimed and is not handed out yet. */
static void free_claimed(void)
{
    void *block[64];

    for (unsigned i = 0; i < 64; i++)
        block[i] = get(48);
    for (unsigned i = 0; i < 64; i++)
        culet_free(block[i]);
    get(48);
    culet_free(block[40]);
    culet_malloc_trim(0);
}

TEST(a_second_free_of_a_claimed_block_is_reported_when_the_claim_ends)
{
    start(1 << 30);
    expect_abort(free_claimed, "culet: double free of 0x");
}

/* ---- hardened processes ---- */

static void allocate_hardened(const char *level)
{
    static void *kept[500];

    setenv("CULET_HARDEN", level, 1);
    start(4096);
    double live = allocate_much(kept, 500, 10000);
    check_estimate("allocated", view('a').bytes, allocated_bytes);
    check_estimate("live", view('l').bytes, live);
    unsigned found = 0;
    for (unsigned i = 0; i < 500; i++) {
        found += sampled(kept[i]);
        culet_free(kept[i]);
    }
    CHECK(found > 50, "%u samples", found);
    CHECK_EQUAL((uint64_t)view('l').samples, 0);
    always = 1;
    victim = get(40);
    /* The distance was drawn before. */
    while (!sampled(victim))
        victim = get(40);
    CHECK_EQUAL(culet_malloc_usable_size(victim), *level == '1' ? 48 : 40);
    fill((unsigned char *)victim, 40);
    victim = culet_realloc(victim, 5000);
    check_filled((unsigned char *)victim, 40);
    expect_abort(free_twice, "culet: double free of 0x");
    expect_abort(free_inside, "it points 16 bytes into the 5");
    victim = culet_malloc(0);
    CHECK(!sampled(victim), "a block of no bytes is a sample");
    culet_free(victim);
    stop();
}

TEST(blocks_of_a_process_hardened_at_level_1_are_sampled)
{
    allocate_hardened("1");
}

TEST(blocks_of_a_process_hardened_at_level_2_are_sampled)
{
    allocate_hardened("2");
}

TEST(blocks_of_a_process_hardened_at_level_3_are_sampled)
{
    allocate_hardened("3");
}

/* ---- threads and forks ---- */

#define THREADS 8

static _Atomic bool over;
static _Atomic(void *) exchanged[256];

static void *churn(void *data)
{
    uint64_t random = (uint64_t)(uintptr_t)data + 1;

    while (!atomic_load(&over)) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        size_t bytes = (random >> 60) ? random >> 40 & 1023 : random >> 40 & 0xffff;
        unsigned char *block = random >> 33 & 1 ? culet_malloc(bytes) : culet_calloc(1, bytes);
        if (bytes)
            block[0] = block[bytes - 1] = 1;
        culet_free(atomic_exchange(&exchanged[random >> 50 & 255], block));
    }
    return NULL;
}

static pthread_t threads[THREADS];

static void start_threads(void)
{
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)i) == 0, "no thread");
}

static void end_threads(void)
{
    atomic_store(&over, true);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0, "no end of the thread");
    for (unsigned i = 0; i < 256; i++)
        culet_free(atomic_exchange(&exchanged[i], NULL));
}

TEST(it_starts_and_ends_while_eight_threads_allocate)
{
    start(2000); /* the set-up comes before threads */
    stop();
    start_threads();
    for (unsigned round = 0; round < 20; round++) {
        start(2000);
        for (unsigned i = 0; i < 200; i++)
            culet_free(get(10 * i));
        CHECK(view('a').samples > 0, "no sample");
        culet_profile_api.stop();
    }
    start(2000);
    end_threads();
    CHECK_EQUAL((uint64_t)view('l').samples, 0);
    stop();
    culet_malloc_trim(0);
    check_all_free();
}

TEST(forks_beside_threads_that_are_sampled)
{
    start(2000);
    start_threads();
    for (unsigned round = 0, rounds = check_rounds(10, 30); round < rounds; round++) {
        pid_t child = fork();
        if (child == 0) {
            culet_heap_check();
            for (unsigned i = 0; i < 2000; i++)
                culet_free(get(i));
            CHECK(view('a').samples > 0, "no sample in the child");
            for (unsigned i = 0; i < 256; i++)
                culet_free(atomic_exchange(&exchanged[i], NULL));
            culet_profile_api.stop();
            culet_heap_check();
            _exit(0);
        }
        check_child(child);
    }
    end_threads();
    stop();
}

/* ---- out of memory ---- */

static long refuse_at, requests;

static bool refuse(void)
{
    return ++requests == refuse_at;
}

TEST(a_sample_without_memory_is_an_ordinary_block)
{
    long most = 1000;
    void *used[64];

    always = 1;
    start(1);
    /* Memory that is reused, and not zero. */
    for (unsigned i = 0; i < 64; i++)
        used[i] = memset(get(i * 500 + 1), 0xee, i * 500 + 1);
    for (unsigned i = 0; i < 64; i++)
        culet_free(used[i]);
    for (refuse_at = 1; refuse_at <= most; refuse_at++) {
        void *block[40];
        requests = 0;
        culet_os_refuse = refuse;
        for (unsigned i = 0; i < 40; i++) {
            size_t bytes = i % 4 ? i * 500 : i * 100000;
            errno = 0;
            block[i] = i % 2 ? culet_malloc(bytes) : culet_calloc(1, bytes);
            if (!block[i])
                CHECK_EQUAL(errno, ENOMEM);
            for (size_t k = 0; block[i] && k < bytes && !(i % 2); k++)
                if (((unsigned char *)block[i])[k])
                    CHECK(false, "byte %zu of %zu is not zero", k, bytes);
            if (block[i])
                memset(block[i], 0xee, bytes);
        }
        culet_os_refuse = NULL;
        most = requests;
        for (unsigned i = 0; i < 40; i++)
            culet_free(block[i]);
        CHECK_EQUAL((uint64_t)view('l').samples, 0);
        culet_heap_check();
    }
    CHECK(most > 0, "no request for memory");
    stop();
    check_all_free();
}

/* ---- a tracer at the probes ---- */

#if CULET_PROBES

void __wrap_culet_probes_alloc(const void *block, uint64_t size, uint64_t weighted_bytes);
void __wrap_culet_probes_free(const void *block);
void __real_culet_probes_alloc(const void *block, uint64_t size, uint64_t weighted_bytes);
void __real_culet_probes_free(const void *block);

static _Thread_local struct {
    unsigned allocs, frees;
    const void *block, *freed;
    uint64_t size, weighted;
} event;

void __wrap_culet_probes_alloc(const void *block, uint64_t size, uint64_t weighted_bytes)
{
    event.allocs++;
    event.block = block;
    event.size = size;
    event.weighted = weighted_bytes;
    __real_culet_probes_alloc(block, size, weighted_bytes);
}

void __wrap_culet_probes_free(const void *block)
{
    event.frees++;
    event.freed = block;
    __real_culet_probes_free(block);
}

/* As the kernel does for a tracer. */
static void attach(int tracers)
{
    __atomic_store_n(&otel_memory_alloc_semaphore, (unsigned short)tracers, __ATOMIC_RELAXED);
    __atomic_store_n(&otel_memory_free_semaphore, (unsigned short)tracers, __ATOMIC_RELAXED);
    culet_free(get(1 << 20)); /* by the slow path, which notices it */
}

static void set_up_tracer(double bytes)
{
    culet_free(get(1));
    culet_profiler_setup();
    mean = bytes;
    culet_profile_set_mean((uint64_t)bytes);
}

/* One request; whether it was a sample, which the probes must have said. */
static bool traced(size_t bytes)
{
    unsigned before = event.allocs, frees = event.frees;
    void *block = get(bytes);
    bool fired = event.allocs != before;

    CHECK_EQUAL(fired, sampled(block));
    if (fired) {
        CHECK(event.block == block, "the probe says %p for %p", event.block, block);
        CHECK_EQUAL(event.size, culet_malloc_usable_size(block));
        CHECK_EQUAL(event.weighted, (uint64_t)round(culet_profile_weight(event.size) * (double)event.size));
    }
    culet_free(block);
    CHECK_EQUAL(event.frees - frees, fired);
    CHECK(!fired || event.freed == block, "the probe says that %p was freed, not %p", event.freed, block);
    return fired;
}

static unsigned traced_of(unsigned times, size_t bytes)
{
    unsigned found = 0;

    for (unsigned i = 0; i < times; i++)
        found += traced(bytes);
    return found;
}

TEST(a_tracer_gets_samples_without_a_profile)
{
    set_up_tracer(100 * 512);
    CHECK_EQUAL(traced_of(10000, 512), 0);
    attach(1);
    unsigned found = traced_of(10000, 512);
    CHECK(found > 40 && found < 180, "%u samples in place of 100", found);
    CHECK(!culet_profile_api.running(), "the profile runs");
    attach(2);
    CHECK(traced_of(10000, 512) > 40, "no samples with two tracers");
    attach(0);
    CHECK_EQUAL(traced_of(10000, 512), 0);
    CHECK_EQUAL(atomic_load(&culet_bin_profile), 0);
    check_all_free();
}

TEST(a_tracer_and_the_profile_come_and_go)
{
    set_up_tracer(100 * 512);
    start(100 * 512);
    CHECK(traced_of(10, 512) == 0 && !event.allocs, "a probe without a tracer");
    attach(1);
    event.allocs = 0;
    double before = view('a').samples;
    CHECK(traced_of(10000, 512) > 40, "no samples with the profile");
    CHECK_EQUAL((uint64_t)(view('a').samples - before), event.allocs);
    stop();
    CHECK(traced_of(10000, 512) > 40, "the profile's end has ended the tracer's samples");
    start(100 * 512);
    attach(0);
    event.allocs = 0;
    for (unsigned i = 0; i < 10000; i++)
        culet_free(get(512));
    CHECK(view('a').samples > 40, "the tracer's end has ended the profile");
    CHECK_EQUAL(event.allocs, 0);
    stop();
    CHECK_EQUAL(atomic_load(&culet_bin_profile), 0);
    check_all_free();
}

TEST(a_resized_sample_is_freed_and_allocated_for_a_tracer)
{
    set_up_tracer(1);
    attach(1);
    for (size_t bytes = 100000; bytes < 40000000; bytes = bytes * 5 / 3) {
        void *block = get(bytes);
        unsigned allocs = event.allocs, frees = event.frees;
        CHECK(event.block == block, "it is no sample");
        void *moved = culet_realloc(block, bytes * 3 / 2);
        CHECK_EQUAL(event.allocs, allocs + 1);
        CHECK_EQUAL(event.frees, frees + 1);
        CHECK(event.freed == block && event.block == moved, "the probes say %p and %p, not %p and %p", event.freed,
              event.block, block, moved);
        culet_free(moved);
        CHECK(event.freed == moved, "it was freed");
    }
    attach(0);
    check_all_free();
}

static _Atomic bool tracing_over;

static void *trace_requests(void *unused)
{
    while (!atomic_load(&tracing_over))
        culet_free(get(1 + below(60000)));
    return unused;
}

TEST(tracers_come_and_go_beside_threads)
{
    pthread_t thread[4];

    set_up_tracer(20000);
    for (unsigned i = 0; i < 4; i++)
        CHECK(pthread_create(&thread[i], NULL, trace_requests, NULL) == 0, "no thread");
    for (unsigned i = 0; i < 300; i++) {
        attach(below(2) ? 1 : 0);
        if (below(2))
            culet_profile_api.stop();
        else
            CHECK(culet_profile_api.start(20000), "no memory");
    }
    culet_profile_api.stop();
    attach(1);
    CHECK(atomic_load(&culet_bin_profile) != 0, "no sampling for the last tracer");
    attach(0);
    CHECK_EQUAL(atomic_load(&culet_bin_profile), 0);
    atomic_store(&tracing_over, true);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    check_all_free();
}

#endif

CHECK_MAIN
