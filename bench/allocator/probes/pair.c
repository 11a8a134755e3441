/* pair.c - the shortest life: malloc, one write, free. */
#define _GNU_SOURCE
#include "probe.h"

static struct parameter parameters[] = {
    {"threads", 1, "threads"},
    {"min", 64, "smallest block in bytes"},
    {"max", 64, "largest block in bytes"},
    {"operations", 20000000, "pairs in all"},
    {0},
};
enum { THREADS, MIN, MAX, OPERATIONS };

static pthread_barrier_t gate;
static struct interval interval[MAX_THREADS];

static void *pairs(void *data)
{
    size_t self = (uintptr_t)data;
    uint64_t random = self + 1;
    size_t min = parameters[MIN].value, max = parameters[MAX].value;

    wait_at(&gate);
    interval[self] = start_interval();
    for (uint64_t n = parameters[OPERATIONS].value / parameters[THREADS].value; n; n--) {
        void *block = take(min == max ? min : size_between(next_random(&random), min, max));
        keep_writes(block);
        free(block);
    }
    stop_interval(&interval[self]);
    return NULL;
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    unsigned threads = (unsigned)at_most(parameters[THREADS].value, MAX_THREADS, "threads");
    at_most(parameters[MIN].value, parameters[MAX].value, "min");
    pthread_t thread[MAX_THREADS];

    make_barrier(&gate, threads);
    for (unsigned t = 0; t < threads; t++)
        thread[t] = start_thread(pairs, (void *)(uintptr_t)t);
    for (unsigned t = 0; t < threads; t++)
        join_thread(thread[t]);
    figure_speed(parameters[OPERATIONS].value / threads * threads, total(interval, threads));
    figure_bytes("peak_rss_bytes", peak_rss_bytes());
    return print_figures("pair");
}
