#define _GNU_SOURCE
#include "engine.h"

#include "mapping.h"
#include "measure.h"

#include <err.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINE 64
#define PAGE 4096

/* Per thread, including libc's thread-local storage. */
#define STACK_BYTES (256u << 10)

#define SAMPLES 400 /* about */

/* The time between samples during a pause. */
#define PAUSE_SAMPLE_NS 50000000u

/* The turn often returns at once; sleeping and waking cost 5 us. */
#define SPINS 200

struct worker {
    sem_t turn; /* the threads run one at a time, each passing the turn to the next one */
    bool started;
};

static struct {
    const struct culet_operations *operations;
    struct culet_replay_options options;
    struct culet_replay_result result;
    void **blocks;
    uint64_t *sizes;        /* by block */
    struct worker *workers; /* by thread */
    sem_t end;              /* the main thread's turn */
    size_t sample_room;

    /* Used by the thread that has the turn. */
    uint64_t next;     /* operation */
    uint64_t unmapped; /* operations before this one are not in the page tables */
    size_t next_reading;
    uint64_t next_sample, between_samples;
    uint64_t microseconds, live_bytes, started_ns;
} replay; /* one per process */

/* ---- the contents of blocks ---- */

static unsigned char pattern(uint32_t block_number)
{
    return (unsigned char)(block_number * 31 + 7);
}

static void touch(unsigned char *block, uint32_t block_number, uint64_t from, uint64_t to)
{
    uint64_t step = replay.options.touch == CULET_TOUCH_PAGE ? PAGE : LINE;

    if (from >= to || replay.options.touch == CULET_TOUCH_NONE)
        return;
    if (replay.options.touch >= CULET_TOUCH_ALL) {
        memset(block + from, pattern(block_number), to - from);
        return;
    }
    for (uint64_t at = from; at < to; at += step)
        block[at] = pattern(block_number);
    block[to - 1] = pattern(block_number);
}

static void check(const unsigned char *block, uint32_t block_number, uint64_t bytes)
{
    if (replay.options.touch != CULET_TOUCH_CHECK)
        return;
    for (uint64_t i = 0; i < bytes; i++)
        if (block[i] != pattern(block_number))
            errx(1, "the allocator changed byte %llu of a live block of %llu bytes (operation %llu)",
                 (unsigned long long)i, (unsigned long long)replay.sizes[block_number],
                 (unsigned long long)replay.next);
}

static void check_zeros(const unsigned char *block, uint64_t bytes)
{
    if (replay.options.touch != CULET_TOUCH_CHECK)
        return;
    for (uint64_t i = 0; i < bytes; i++)
        if (block[i])
            errx(1, "calloc returned a block of %llu bytes that are not all zero (operation %llu)",
                 (unsigned long long)bytes, (unsigned long long)replay.next);
}

/* ---- operations ---- */

static void *allocate_aligned(const struct culet_operation *operation)
{
    uint64_t alignment = (uint64_t)1 << operation->shift;
    void *block = NULL;

    if (posix_memalign(&block, alignment < sizeof(void *) ? sizeof(void *) : alignment, operation->bytes) != 0)
        return NULL;
    if (replay.options.touch == CULET_TOUCH_CHECK && (uintptr_t)block % alignment)
        errx(1, "posix_memalign returned a block that is not aligned to %llu bytes (operation %llu)",
             (unsigned long long)alignment, (unsigned long long)replay.next);
    return block;
}

static void *allocate(const struct culet_operation *operation)
{
    switch (operation->kind) {
    case CULET_EVENT_CALLOC: {
        void *block = calloc(1, operation->bytes);
        if (block)
            check_zeros(block, operation->bytes);
        return block;
    }
    case CULET_EVENT_ALIGNED:
        return allocate_aligned(operation);
    default:
        return malloc(operation->bytes);
    }
}

static void store(const struct culet_operation *operation, void *block, uint64_t old_bytes)
{
    if (!block && operation->bytes)
        errx(1, "the allocator returned no memory for a block of %llu bytes (operation %llu)",
             (unsigned long long)operation->bytes, (unsigned long long)replay.next);
    touch(block, operation->block, old_bytes, operation->bytes);
    replay.blocks[operation->block] = block;
    replay.sizes[operation->block] = operation->bytes;
    replay.live_bytes += operation->bytes;
}

static void run_operation(const struct culet_operation *operation)
{
    uint64_t old_bytes = replay.sizes[operation->block];
    void *block = replay.blocks[operation->block];
    void *resized;

    switch (operation->kind) {
    case CULET_EVENT_FREE:
        check(block, operation->block, old_bytes);
        replay.live_bytes -= old_bytes;
        replay.blocks[operation->block] = NULL;
        replay.sizes[operation->block] = 0;
        free(block);
        break;
    case CULET_EVENT_REALLOC:
        check(block, operation->block, old_bytes);
        replay.live_bytes -= old_bytes;
        resized = realloc(block, operation->bytes);
        if (resized)
            check(resized, operation->block, old_bytes < operation->bytes ? old_bytes : operation->bytes);
        store(operation, resized, old_bytes);
        break;
    default:
        store(operation, allocate(operation), 0);
    }
}

/* ---- samples and pauses, excluded from the CPU time ---- */

static void take_sample(void)
{
    struct culet_replay_result *result = &replay.result;

    culet_mapping_unmap_pages(replay.operations->list, replay.unmapped * sizeof(struct culet_operation),
                              replay.next * sizeof(struct culet_operation));
    replay.unmapped = replay.next;
    culet_mapping_grow((void **)&result->samples, &replay.sample_room, result->sample_count + 1,
                       sizeof *result->samples);
    result->samples[result->sample_count++] = (struct culet_sample){.index = replay.next,
                                                                    .microseconds = replay.microseconds,
                                                                    .wall_ns = culet_measure_now() - replay.started_ns,
                                                                    .live_bytes = replay.live_bytes,
                                                                    .resident_bytes = culet_measure_resident()};
}

static void pause_until(uint64_t then)
{
    for (uint64_t now = culet_measure_now(); now < then; now = culet_measure_now()) {
        uint64_t left = then - now < PAUSE_SAMPLE_NS ? then - now : PAUSE_SAMPLE_NS;
        struct timespec time = {.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
        nanosleep(&time, NULL);
        if (left == PAUSE_SAMPLE_NS)
            take_sample();
    }
}

static bool is_reading_due(void)
{
    const struct culet_operations *operations = replay.operations;

    return replay.next_reading < operations->reading_count &&
           operations->readings[replay.next_reading].index <= replay.next;
}

static bool is_sample_due(void)
{
    return replay.next >= replay.next_sample || replay.next == replay.operations->peak_index + 1;
}

static void pause_and_sample(void)
{
    while (is_reading_due()) {
        replay.microseconds = replay.operations->readings[replay.next_reading++].microseconds;
        if (replay.options.paced)
            pause_until(replay.started_ns + replay.microseconds * 1000);
    }
    if (is_sample_due())
        take_sample();
    while (replay.next >= replay.next_sample)
        replay.next_sample += replay.between_samples;
}

/* ---- threads ---- */

static void *run_worker(void *own);

static void wait_for_turn(sem_t *turn)
{
    for (int i = 0; i < SPINS; i++)
        if (!sem_trywait(turn))
            return;
    while (sem_wait(turn))
        ;
}

static void pass_turn(uint32_t thread)
{
    struct worker *worker = &replay.workers[thread];

    if (worker->started) {
        sem_post(&worker->turn);
        return;
    }
    worker->started = true;
    sem_init(&worker->turn, 0, 1);

    pthread_attr_t attributes;
    pthread_t id;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&id, &attributes, run_worker, worker);
    pthread_attr_destroy(&attributes);
    if (error)
        errx(1, "cannot start a thread: %s; raise the limit on processes (ulimit -u), or replay with --single",
             strerror(error));
}

/* Runs the operations up to the next one of another thread. */
static void run_turn(uint32_t thread)
{
    const struct culet_operations *operations = replay.operations;
    uint64_t cpu = culet_measure_cpu();

    while (replay.next < operations->count && operations->list[replay.next].thread == thread) {
        if (__builtin_expect(is_sample_due() || is_reading_due(), 0)) {
            replay.result.cpu_ns += culet_measure_cpu() - cpu;
            pause_and_sample();
            cpu = culet_measure_cpu();
        }
        run_operation(&operations->list[replay.next]);
        replay.next++;
    }
    replay.result.cpu_ns += culet_measure_cpu() - cpu;
}

/* A thread of the recorded program; it ends after its last operation. */
static void *run_worker(void *own)
{
    struct worker *worker = own;
    uint32_t thread = (uint32_t)(worker - replay.workers);
    bool last;

    do {
        wait_for_turn(&worker->turn);
        run_turn(thread);
        last = replay.next > replay.operations->last[thread];
        if (replay.next < replay.operations->count)
            pass_turn(replay.operations->list[replay.next].thread);
        else
            sem_post(&replay.end);
    } while (!last);
    return NULL;
}

struct culet_replay_result culet_replay(const struct culet_operations *operations,
                                        const struct culet_replay_options *options)
{
    replay.operations = operations;
    replay.options = *options;
    replay.blocks = culet_mapping_new(operations->blocks, sizeof *replay.blocks);
    replay.sizes = culet_mapping_new(operations->blocks, sizeof *replay.sizes);
    replay.workers = culet_mapping_new(operations->threads, sizeof *replay.workers);
    sem_init(&replay.end, 0, 0);
    replay.between_samples = operations->count / SAMPLES + 1;
    replay.result.has_instructions = culet_measure_count_instructions();
    uint64_t instructions = replay.result.has_instructions ? culet_measure_instructions() : 0;

    culet_mapping_unmap_pages(operations->list, 0, operations->count * sizeof *operations->list);
    replay.started_ns = culet_measure_now();
    if (operations->count) {
        pass_turn(operations->list[0].thread);
        wait_for_turn(&replay.end);
    }
    replay.result.wall_ns = culet_measure_now() - replay.started_ns;
    if (replay.result.has_instructions)
        replay.result.instructions = culet_measure_instructions() - instructions;
    take_sample();
    return replay.result;
}
