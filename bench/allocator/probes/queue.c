/* queue.c - some threads allocate, others free: blocks go through one bounded queue, in batches. */
#define _GNU_SOURCE
#include "probe.h"

static struct parameter parameters[] = {
    {"producers", 1, "threads that allocate"},
    {"consumers", 1, "threads that free"},
    {"batch", 100, "blocks handed over at a time"},
    {"depth", 64, "batches that the queue holds"},
    {"min", 16, "smallest block in bytes"},
    {"max", 1024, "largest block in bytes"},
    {"operations", 2000000, "blocks that go through in all"},
    {0},
};
enum { PRODUCERS, CONSUMERS, BATCH, DEPTH, MIN, MAX, OPERATIONS };

#define MAX_BATCH 1024
#define MAX_DEPTH 1024

struct batch {
    void *block[MAX_BATCH];
    size_t bytes;
};

static struct batch *ring;
static uint64_t head, tail, batches; /* taken, put, in all [lock] */
static uint64_t begun;               /* batches that some producer works on or has put [lock] */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, room = PTHREAD_COND_INITIALIZER;
static size_t live, peak; /* bytes in the queue [lock] */
static pthread_barrier_t gate;
static struct interval interval[MAX_THREADS];

static bool begin_batch(void)
{
    pthread_mutex_lock(&lock);
    bool any = begun < batches;
    begun += any;
    pthread_mutex_unlock(&lock);
    return any;
}

static void put(const struct batch *one, size_t count)
{
    pthread_mutex_lock(&lock);
    while (tail - head == parameters[DEPTH].value)
        pthread_cond_wait(&room, &lock);
    struct batch *place = &ring[tail++ % parameters[DEPTH].value];
    memcpy(place->block, one->block, count * sizeof *one->block);
    place->bytes = one->bytes;
    live += one->bytes;
    if (live > peak)
        peak = live;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&lock);
}

static bool get(struct batch *one, size_t count)
{
    pthread_mutex_lock(&lock);
    while (tail == head && head < batches)
        pthread_cond_wait(&more, &lock);
    bool any = tail != head;
    if (any) {
        struct batch *place = &ring[head++ % parameters[DEPTH].value];
        memcpy(one->block, place->block, count * sizeof *one->block);
        live -= place->bytes;
        if (head == batches)
            pthread_cond_broadcast(&more);
        pthread_cond_signal(&room);
    }
    pthread_mutex_unlock(&lock);
    return any;
}

static void *produce(void *data)
{
    size_t self = (uintptr_t)data;
    uint64_t random = self + 1;
    size_t count = parameters[BATCH].value;
    struct batch one;

    wait_at(&gate);
    interval[self] = start_interval();
    while (begin_batch()) {
        one.bytes = 0;
        for (size_t i = 0; i < count; i++) {
            size_t bytes = size_between(next_random(&random), parameters[MIN].value, parameters[MAX].value);
            one.block[i] = take(bytes);
            one.bytes += bytes;
        }
        put(&one, count);
    }
    stop_interval(&interval[self]);
    return NULL;
}

static void *consume(void *data)
{
    size_t self = (uintptr_t)data, count = parameters[BATCH].value;
    struct batch one;

    wait_at(&gate);
    interval[self] = start_interval();
    while (get(&one, count))
        for (size_t i = 0; i < count; i++)
            free(one.block[i]);
    stop_interval(&interval[self]);
    return NULL;
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    unsigned producers = (unsigned)at_most(parameters[PRODUCERS].value, MAX_THREADS / 2, "producers");
    unsigned consumers = (unsigned)at_most(parameters[CONSUMERS].value, MAX_THREADS / 2, "consumers");
    at_most(parameters[BATCH].value, MAX_BATCH, "batch");
    at_most(parameters[DEPTH].value, MAX_DEPTH, "depth");
    at_most(parameters[MIN].value, parameters[MAX].value, "min");
    ring = own_memory(parameters[DEPTH].value * sizeof *ring);
    memset(ring, 1, parameters[DEPTH].value * sizeof *ring); /* counted in `base` */
    batches = (parameters[OPERATIONS].value + parameters[BATCH].value - 1) / parameters[BATCH].value;
    pthread_t thread[MAX_THREADS];
    size_t base = rss_bytes();

    make_barrier(&gate, producers + consumers);
    for (unsigned t = 0; t < producers; t++)
        thread[t] = start_thread(produce, (void *)(uintptr_t)t);
    for (unsigned t = 0; t < consumers; t++)
        thread[producers + t] = start_thread(consume, (void *)(uintptr_t)(producers + t));
    for (unsigned t = 0; t < producers + consumers; t++)
        join_thread(thread[t]);
    figure_speed(batches * parameters[BATCH].value, total(interval, producers + consumers));
    figure_memory(peak, base);
    return print_figures("queue");
}
