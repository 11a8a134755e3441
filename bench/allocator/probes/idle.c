/* idle.c - resident memory after a burst, when nothing calls the allocator any more.
 *
 * Threads allocate `bytes` together, free all but one block in `keep`, and block. RSS is read 1 and 3 s later;
 * then a forked child does the same with threads of its own. No allocator that does not move blocks can go below the
 * floor: the RSS before the burst and the pages of the survivors. */
#define _GNU_SOURCE
#include "probe.h"

static struct parameter parameters[] = {
    {"bytes", 250 * MIB, "bytes that all threads together allocate"},
    {"threads", 4, "threads, which stay alive"},
    {"min", 16, "smallest block in bytes"},
    {"max", 2048, "largest block in bytes"},
    {"keep", 2000, "one block in so many survives"},
    {"milliseconds", 3000, "when RSS is read for the last time"},
    {0},
};
enum { BYTES, THREADS, MIN, MAX, KEEP, MILLISECONDS };

#define MAX_SURVIVORS ((size_t)1 << 18)

static pthread_barrier_t burst_over;
static struct survivor {
    void *block;
    size_t bytes;
} survivor[MAX_SURVIVORS];
static atomic_size_t survivors;

static void survive(void *block, size_t bytes)
{
    size_t at = atomic_fetch_add(&survivors, 1);

    if (at >= MAX_SURVIVORS)
        give_up("more than %zu survivors; keep must be larger", MAX_SURVIVORS);
    survivor[at] = (struct survivor){block, bytes};
}

static size_t burst_size(uint64_t random)
{
    return size_between(random, parameters[MIN].value, parameters[MAX].value);
}

static void *burst(void *data)
{
    uint64_t random = (uintptr_t)data, replay = random;
    size_t goal = parameters[BYTES].value / parameters[THREADS].value;
    size_t room = (goal / parameters[MIN].value + 1) * sizeof(void *);
    void **block = own_memory(room);
    size_t count = 0;

    for (size_t sum = 0; sum < goal;) {
        size_t bytes = burst_size(next_random(&random));
        block[count] = take(bytes);
        memset(block[count++], 1, bytes);
        sum += bytes;
    }
    for (size_t i = 0; i < count; i++) {
        size_t bytes = burst_size(next_random(&replay));
        if (i % parameters[KEEP].value == parameters[KEEP].value / 2)
            survive(block[i], bytes);
        else
            free(block[i]);
    }
    give_back_own(block, room);
    wait_at(&burst_over);
    for (;;)
        pause();
    return NULL;
}

static int by_address(const void *one, const void *other)
{
    const struct survivor *a = one, *b = other;

    return ((uintptr_t)a->block > (uintptr_t)b->block) - ((uintptr_t)a->block < (uintptr_t)b->block);
}

/* Bytes of the pages that the first `count` survivors touch. Sorts them. */
static size_t survivor_pages(size_t count)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 0;
    uintptr_t next = 0;

    qsort(survivor, count, sizeof *survivor, by_address);
    for (size_t i = 0; i < count; i++) {
        uintptr_t from = (uintptr_t)survivor[i].block / page;
        uintptr_t to = ((uintptr_t)survivor[i].block + survivor[i].bytes - 1) / page;
        if (from < next)
            from = next;
        if (to >= from)
            pages += to - from + 1;
        if (to + 1 > next)
            next = to + 1;
    }
    return pages * page;
}

/* One burst, and RSS while its threads are blocked. */
static void burst_and_wait(const char *who, size_t seed)
{
    static const unsigned later[] = {1, 3}; /* seconds */
    unsigned threads = (unsigned)parameters[THREADS].value, last = (unsigned)parameters[MILLISECONDS].value;

    make_barrier(&burst_over, threads + 1);
    for (unsigned t = 0; t < threads; t++)
        start_thread(burst, (void *)(uintptr_t)(seed + t));
    wait_at(&burst_over);
    double began = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < 2; i++) {
        char name[80];
        unsigned due = 1000 * later[i] < last ? 1000 * later[i] : last;
        sleep_seconds(began + due / 1e3 - seconds(CLOCK_MONOTONIC));
        snprintf(name, sizeof name, "%s_rss_after_%us_bytes", who, later[i]);
        figure_bytes(name, rss_bytes());
    }
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    at_most(parameters[THREADS].value, MAX_THREADS, "threads");
    at_most(parameters[MIN].value, parameters[MAX].value, "min");

    size_t base = rss_bytes();
    burst_and_wait("process", 1);
    pid_t child = fork_child();
    if (child == 0) {
        size_t inherited = atomic_load(&survivors);
        burst_and_wait("child", 1001);
        /* Last, since sorting may allocate; the process's first, since sorting moves the child's. */
        figure_bytes("process_floor_bytes", base + survivor_pages(inherited));
        figure_bytes("child_floor_bytes", base + survivor_pages(atomic_load(&survivors)));
        print_figures("idle");
        _exit(0);
    }
    end_with(child);
}
