/* larson.c - a server after Larson and Krishnan ("Memory allocation for long-running server applications", ISMM 1998):
 * threads replace blocks at random; after so many, each starts a successor that takes over its blocks, and ends. */
#define _GNU_SOURCE
#include "probe.h"

static struct parameter parameters[] = {
    {"threads", 2, "threads alive at the same time"},
    {"set", 5000, "live blocks in each thread's hands"},
    {"min", 16, "smallest block in bytes"},
    {"max", 1024, "largest block in bytes"},
    {"operations", 2000000, "replacements in all"},
    {"life", 10000, "replacements after which a thread ends"},
    {0},
};
enum { THREADS, SET, MIN, MAX, OPERATIONS, LIFE };

struct connection {
    uint64_t random;
    uint64_t left; /* replacements that are still to be made */
    void **block;
};

static pthread_barrier_t over;

static void *serve(void *data)
{
    struct connection *mine = data;
    size_t set = parameters[SET].value;
    uint64_t now = mine->left < parameters[LIFE].value ? mine->left : parameters[LIFE].value;

    for (mine->left -= now; now; now--) {
        uint64_t some = next_random(&mine->random);
        void **slot = &mine->block[index_below(some, set)];
        free(*slot);
        *slot = take(size_between(some, parameters[MIN].value, parameters[MAX].value));
    }
    if (mine->left)
        pthread_detach(start_thread(serve, mine));
    else
        wait_at(&over);
    return NULL;
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    unsigned threads = (unsigned)at_most(parameters[THREADS].value, MAX_THREADS, "threads");
    size_t set = at_most(parameters[SET].value, 1u << 24, "set"), live = 0;
    at_most(parameters[LIFE].value, UINT32_MAX, "life");
    at_most(parameters[MIN].value, parameters[MAX].value, "min");
    struct connection *all = own_memory(threads * sizeof *all);
    size_t base = rss_bytes();

    for (unsigned t = 0; t < threads; t++) {
        all[t].random = t + 1;
        all[t].left = parameters[OPERATIONS].value / threads;
        all[t].block = own_memory(set * sizeof(void *));
        for (size_t i = 0; i < set; i++) { /* by the main thread, as Larson's does */
            size_t bytes = size_between(next_random(&all[t].random), parameters[MIN].value, parameters[MAX].value);
            all[t].block[i] = take(bytes);
            live += bytes;
        }
    }
    make_barrier(&over, threads + 1);
    struct watch watch = start_watch();
    for (unsigned t = 0; t < threads; t++)
        pthread_detach(start_thread(serve, &all[t]));
    wait_at(&over);
    watch = stop_watch(watch);
    figure_speed(parameters[OPERATIONS].value / threads * threads, watch);
    figure_memory(live, base + threads * set * sizeof(void *));
    return print_figures("larson");
}
