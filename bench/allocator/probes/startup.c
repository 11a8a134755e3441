/* startup.c - Private_Dirty of a small process after short-lived threads that allocate and free a little. */
#define _GNU_SOURCE
#include "probe.h"

static struct parameter parameters[] = {
    {"threads", 20, "short-lived threads, of which all are alive at the same time"},
    {"blocks", 200, "blocks that each of them allocates and frees"},
    {"min", 16, "smallest block in bytes"},
    {"max", 1024, "largest block in bytes"},
    {0},
};
enum { THREADS, BLOCKS, MIN, MAX };

#define MAX_BLOCKS 10000

static pthread_barrier_t together;

static void *short_life(void *data)
{
    uint64_t random = (uintptr_t)data;
    void *block[MAX_BLOCKS];

    for (size_t i = 0; i < parameters[BLOCKS].value; i++)
        block[i] = take(size_between(next_random(&random), parameters[MIN].value, parameters[MAX].value));
    wait_at(&together);
    for (size_t i = 0; i < parameters[BLOCKS].value; i++)
        free(block[i]);
    return NULL;
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    unsigned threads = (unsigned)parameters[THREADS].value;
    if (threads > MAX_THREADS)
        give_up("threads must be at most %d", MAX_THREADS);
    at_most(parameters[BLOCKS].value, MAX_BLOCKS, "blocks");
    pthread_t thread[MAX_THREADS];

    if (threads)
        make_barrier(&together, threads);
    for (unsigned t = 0; t < threads; t++)
        thread[t] = start_thread(short_life, (void *)(uintptr_t)(t + 1));
    for (unsigned t = 0; t < threads; t++)
        join_thread(thread[t]);
    figure_bytes("private_dirty_bytes", private_dirty_bytes());
    return print_figures("startup");
}
