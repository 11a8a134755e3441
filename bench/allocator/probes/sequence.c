/* sequence.c - many allocations in a row, then all of them freed: in order, in reverse, at random, or in the order of
 * their addresses by another thread, which is what Ruby's sweep does. */
#define _GNU_SOURCE
#include "probe.h"

enum order { IN_ORDER, IN_REVERSE, AT_RANDOM, SWEPT };

static struct parameter parameters[] = {
    {"threads", 1, "threads that allocate (and free, but for order 3)"},
    {"blocks", 10000, "blocks of each thread"},
    {"rounds", 100, "how often"},
    {"order", IN_ORDER, "0 in order, 1 in reverse, 2 at random, 3 by address and by another thread"},
    {"min", 16, "smallest block in bytes"},
    {"max", 1024, "largest block in bytes"},
    {0},
};
enum { THREADS, BLOCKS, ROUNDS, ORDER, MIN, MAX };

/* One thread's work. `gate` keeps it and its sweeper in step. */
struct work {
    uint64_t random;
    void **block, **scratch;
    size_t live;
    double taking, freeing; /* CPU seconds */
    pthread_barrier_t gate;
};

static void allocate_all(struct work *work)
{
    size_t sum = 0;
    double began = seconds(CLOCK_THREAD_CPUTIME_ID);

    for (size_t i = 0; i < parameters[BLOCKS].value; i++) {
        size_t bytes = size_between(next_random(&work->random), parameters[MIN].value, parameters[MAX].value);
        work->block[i] = take(bytes);
        sum += bytes;
    }
    work->taking += seconds(CLOCK_THREAD_CPUTIME_ID) - began;
    if (sum > work->live)
        work->live = sum;
}

static void free_all(struct work *work)
{
    double began = seconds(CLOCK_THREAD_CPUTIME_ID);

    for (size_t i = 0; i < parameters[BLOCKS].value; i++)
        free(work->block[i]);
    work->freeing += seconds(CLOCK_THREAD_CPUTIME_ID) - began;
}

static void reverse(struct work *work)
{
    for (size_t i = 0, j = parameters[BLOCKS].value - 1; i < j; i++, j--) {
        void *kept = work->block[i];
        work->block[i] = work->block[j];
        work->block[j] = kept;
    }
}

static void shuffle(struct work *work)
{
    for (size_t i = parameters[BLOCKS].value - 1; i > 0; i--) {
        size_t other = index_below(next_random(&work->random), i + 1);
        void *kept = work->block[i];
        work->block[i] = work->block[other];
        work->block[other] = kept;
    }
}

/* Radix sort by 11 bits at a time; libc's qsort may allocate. Addresses have at most 55 bits and 4 that are 0. */
static void sort_by_address(struct work *work)
{
    size_t count = parameters[BLOCKS].value;

    for (unsigned shift = 4; shift < 59; shift += 11) {
        static _Thread_local size_t place[1 << 11];
        size_t sum = 0;
        memset(place, 0, sizeof place);
        for (size_t i = 0; i < count; i++)
            place[(uintptr_t)work->block[i] >> shift & 2047]++;
        for (size_t i = 0; i < 2048; i++) {
            size_t here = place[i];
            place[i] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            work->scratch[place[(uintptr_t)work->block[i] >> shift & 2047]++] = work->block[i];
        void **sorted = work->scratch;
        work->scratch = work->block;
        work->block = sorted;
    }
}

static void *sweep(void *data)
{
    struct work *work = data;

    for (uint64_t round = 0; round < parameters[ROUNDS].value; round++) {
        wait_at(&work->gate);
        sort_by_address(work);
        free_all(work);
        wait_at(&work->gate);
    }
    return NULL;
}

static void *run(void *data)
{
    struct work *work = data;

    for (uint64_t round = 0; round < parameters[ROUNDS].value; round++) {
        allocate_all(work);
        switch (parameters[ORDER].value) {
        case SWEPT:
            wait_at(&work->gate);
            wait_at(&work->gate);
            continue;
        case IN_REVERSE:
            reverse(work);
            break;
        case AT_RANDOM:
            shuffle(work);
            break;
        default:
            break;
        }
        free_all(work);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    unsigned threads = (unsigned)at_most(parameters[THREADS].value, MAX_THREADS, "threads");
    size_t room = at_most(parameters[BLOCKS].value, 1u << 28, "blocks") * sizeof(void *);
    if (parameters[ORDER].value > SWEPT)
        give_up("order must be from 0 to 3");
    at_most(parameters[MIN].value, parameters[MAX].value, "min");
    struct work *work = own_memory(threads * sizeof *work);
    pthread_t thread[MAX_THREADS], sweeper[MAX_THREADS];
    double taking = 0, freeing = 0;
    size_t live = 0, base = rss_bytes();

    for (unsigned t = 0; t < threads; t++) {
        work[t].random = t + 1;
        work[t].block = own_memory(room);
        work[t].scratch = own_memory(room);
        make_barrier(&work[t].gate, 2);
    }
    struct watch watch = start_watch();
    for (unsigned t = 0; t < threads; t++) {
        thread[t] = start_thread(run, &work[t]);
        if (parameters[ORDER].value == SWEPT)
            sweeper[t] = start_thread(sweep, &work[t]);
    }
    for (unsigned t = 0; t < threads; t++) {
        join_thread(thread[t]);
        if (parameters[ORDER].value == SWEPT)
            join_thread(sweeper[t]);
        taking += work[t].taking;
        freeing += work[t].freeing;
        live += work[t].live;
    }
    watch = stop_watch(watch);

    double operations = (double)(threads * parameters[ROUNDS].value * parameters[BLOCKS].value);
    figure("cpu_nanoseconds_per_operation", (taking + freeing) * 1e9 / operations);
    figure("cpu_nanoseconds_per_malloc", taking * 1e9 / operations);
    figure("cpu_nanoseconds_per_free", freeing * 1e9 / operations);
    figure("operations_per_second", operations / watch.wall);
    figure_memory(live, base + threads * room);
    return print_figures("sequence");
}
