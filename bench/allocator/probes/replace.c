/* replace.c - random replacement: each thread has an array of live blocks and again and again frees one at random and
 * puts another in its place. */
#define _GNU_SOURCE
#include "probe.h"

static struct parameter parameters[] = {
    {"threads", 1, "threads, each with blocks of its own"},
    {"set", 1000, "live blocks of each thread"},
    {"min", 16, "smallest block in bytes"},
    {"max", 1024, "largest block in bytes"},
    {"operations", 2000000, "replacements that all threads together make"},
    {"fill", 0, "1 to write the whole block"},
    {"zeroed", 0, "1 for calloc"},
    {0},
};
enum { THREADS, SET, MIN, MAX, OPERATIONS, FILL, ZEROED };

static pthread_barrier_t gate;
static struct interval interval[MAX_THREADS];
static atomic_size_t live;

static void *one_block(size_t bytes)
{
    if (!parameters[ZEROED].value) {
        void *block = take(bytes);
        if (parameters[FILL].value) {
            memset(block, 1, bytes);
            keep_writes(block);
        }
        return block;
    }
    char *block = calloc(1, bytes);
    if (!block || block[0] || block[bytes / 2] || block[bytes - 1])
        give_up("calloc(%zu) gave no zeroed block", bytes);
    memset(block, 1, bytes);
    keep_writes(block);
    return block;
}

static void *replace(void *data)
{
    size_t self = (uintptr_t)data;
    uint64_t random = self + 1;
    size_t set = parameters[SET].value, min = parameters[MIN].value, max = parameters[MAX].value, held = 0;
    void **block = own_memory(set * sizeof *block);

    for (size_t i = 0; i < set; i++) {
        size_t bytes = size_between(next_random(&random), min, max);
        block[i] = one_block(bytes);
        held += bytes;
    }
    atomic_fetch_add(&live, held);
    wait_at(&gate);
    interval[self] = start_interval();
    for (uint64_t n = parameters[OPERATIONS].value / parameters[THREADS].value; n; n--) {
        uint64_t some = next_random(&random);
        void **slot = &block[index_below(some, set)];
        free(*slot);
        *slot = one_block(size_between(some, min, max));
    }
    stop_interval(&interval[self]);
    wait_at(&gate); /* its blocks stay until all are done */
    return NULL;
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    unsigned threads = (unsigned)at_most(parameters[THREADS].value, MAX_THREADS, "threads");
    at_most(parameters[MIN].value, parameters[MAX].value, "min");
    at_most(parameters[SET].value, 1u << 30, "set");
    size_t base = rss_bytes();
    pthread_t thread[MAX_THREADS];

    make_barrier(&gate, threads + 1);
    for (unsigned t = 0; t < threads; t++)
        thread[t] = start_thread(replace, (void *)(uintptr_t)t);
    wait_at(&gate);
    wait_at(&gate);
    for (unsigned t = 0; t < threads; t++)
        join_thread(thread[t]);
    figure_speed(parameters[OPERATIONS].value / threads * threads, total(interval, threads));
    figure_memory(atomic_load(&live), base + threads * parameters[SET].value * sizeof(void *));
    return print_figures("replace");
}
