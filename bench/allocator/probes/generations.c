/* generations.c - threads come and go: each frees what its predecessor left, allocates some blocks, frees every second
 * of them, leaves the others to its successor, and ends. */
#define _GNU_SOURCE
#include "probe.h"

static struct parameter parameters[] = {
    {"threads", 2, "threads alive at the same time"},
    {"generations", 1000, "threads that follow each other in each place"},
    {"blocks", 1000, "blocks that each thread allocates"},
    {"min", 16, "smallest block in bytes"},
    {"max", 1024, "largest block in bytes"},
    {0},
};
enum { THREADS, GENERATIONS, BLOCKS, MIN, MAX };

#define MAX_BLOCKS 100000

/* What one thread leaves to the next. */
struct parcel {
    uint64_t random;
    size_t left;
    size_t bytes;
    void *block[MAX_BLOCKS];
};

static void *one_life(void *data)
{
    struct parcel *parcel = data;
    size_t count = parameters[BLOCKS].value, kept = 0;

    for (size_t i = 0; i < parcel->left; i++)
        free(parcel->block[i]);
    parcel->bytes = 0;
    for (size_t i = 0; i < count; i++) {
        size_t bytes = size_between(next_random(&parcel->random), parameters[MIN].value, parameters[MAX].value);
        parcel->block[i] = take(bytes);
        parcel->bytes += bytes;
    }
    for (size_t i = 0; i < count; i++)
        if (i % 2)
            free(parcel->block[i]);
        else
            parcel->block[kept++] = parcel->block[i];
    parcel->left = kept;
    return NULL;
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    unsigned threads = (unsigned)at_most(parameters[THREADS].value, MAX_THREADS, "threads");
    uint64_t generations = at_most(parameters[GENERATIONS].value, 1u << 30, "generations");
    at_most(parameters[BLOCKS].value, MAX_BLOCKS, "blocks");
    at_most(parameters[MIN].value, parameters[MAX].value, "min");
    struct parcel *parcel = own_memory(threads * sizeof *parcel);
    pthread_t thread[MAX_THREADS];
    size_t base = rss_bytes(), early = 0, live = 0;

    struct watch watch = start_watch();
    for (uint64_t g = 0; g < generations; g++) {
        size_t together = 0;
        for (unsigned t = 0; t < threads; t++) {
            if (g == 0)
                parcel[t].random = t + 1;
            thread[t] = start_thread(one_life, &parcel[t]);
        }
        for (unsigned t = 0; t < threads; t++) {
            join_thread(thread[t]);
            together += parcel[t].bytes;
        }
        if (together > live)
            live = together;
        if (g == generations / 10)
            early = rss_bytes();
    }
    watch = stop_watch(watch);
    size_t late = rss_bytes();
    figure_speed(generations * threads * parameters[BLOCKS].value, watch);
    figure_memory(live, base + threads * parameters[BLOCKS].value * sizeof(void *));
    figure_bytes("rss_after_a_tenth_bytes", early);
    figure_bytes("rss_at_the_end_bytes", late);
    return print_figures("generations");
}
