/* idle.c - what stays resident when a burst is over and nobody calls the allocator any more.
 *
 * Some threads allocate `bytes` together, free all but one block in `keep`, and block, alive. Nothing calls malloc or
 * free from then on. RSS is read 0.1, 1 and 3 s later; then a forked child does the same with threads of its own.
 * The floor is what no allocator that does not move blocks can go below: the RSS before the burst, and the pages on
 * which survivors lie. */
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
static void *survivor[MAX_SURVIVORS];
static size_t survivor_bytes[MAX_SURVIVORS];
static atomic_size_t survivors;
static char name_room[80];

static void survive(void *block, size_t bytes)
{
    size_t at = atomic_fetch_add(&survivors, 1);

    if (at >= MAX_SURVIVORS)
        give_up("more than %zu survivors; ask for a larger keep", MAX_SURVIVORS);
    survivor[at] = block;
    survivor_bytes[at] = bytes;
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

static bool before(size_t a, size_t b)
{
    return (uintptr_t)survivor[a] < (uintptr_t)survivor[b];
}

/* libc's qsort may allocate. Shell sort with Knuth's gaps, (3^k - 1) / 2. */
static void sort_survivors(size_t count, size_t *order)
{
    static const size_t gaps[] = {29524, 9841, 3280, 1093, 364, 121, 40, 13, 4, 1};

    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (size_t i = gaps[g]; i < count; i++) {
            size_t one = order[i], j = i;
            for (; j >= gaps[g] && before(one, order[j - gaps[g]]); j -= gaps[g])
                order[j] = order[j - gaps[g]];
            order[j] = one;
        }
}

/* Bytes of the pages that survivors touch. */
static size_t survivor_pages(void)
{
    static size_t order[MAX_SURVIVORS];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 0, count = atomic_load(&survivors);
    uintptr_t next = 0;

    for (size_t i = 0; i < count; i++)
        order[i] = i;
    sort_survivors(count, order);
    for (size_t i = 0; i < count; i++) {
        uintptr_t from = (uintptr_t)survivor[order[i]] / page;
        uintptr_t to = ((uintptr_t)survivor[order[i]] + survivor_bytes[order[i]] - 1) / page;
        if (from < next)
            from = next;
        if (to >= from)
            pages += to - from + 1;
        if (to + 1 > next)
            next = to + 1;
    }
    return pages * page;
}

static const char *name(const char *who, const char *what)
{
    snprintf(name_room, sizeof name_room, "%s_%s_bytes", who, what);
    return name_room;
}

/* One burst and the silence after it. */
static void burst_and_wait(const char *who, size_t seed)
{
    static const struct {
        unsigned milliseconds;
        const char *what;
    } looks[] = {{100, "rss_after_100ms"}, {1000, "rss_after_1s"}, {3000, "rss_after_3s"}};
    unsigned threads = (unsigned)parameters[THREADS].value, last = (unsigned)parameters[MILLISECONDS].value;

    make_barrier(&burst_over, threads + 1);
    for (unsigned t = 0; t < threads; t++)
        start_thread(burst, (void *)(uintptr_t)(seed + t));
    wait_at(&burst_over);
    double began = seconds(CLOCK_MONOTONIC);
    size_t rss[3] = {0};
    for (int i = 0; i < 3; i++) {
        unsigned due = looks[i].milliseconds < last ? looks[i].milliseconds : last;
        sleep_seconds(began + due / 1e3 - seconds(CLOCK_MONOTONIC));
        rss[i] = rss_bytes();
    }
    for (int i = 0; i < 3; i++)
        figure_bytes(name(who, looks[i].what), rss[i]);
}

static void show(const char *who, size_t base)
{
    figure_bytes(name(who, "floor"), base + survivor_pages());
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    at_most(parameters[THREADS].value, MAX_THREADS, "threads");
    at_most(parameters[MIN].value, parameters[MAX].value, "min");

    size_t base = rss_bytes();
    burst_and_wait("process", 1);
    pid_t child = fork();
    if (child < 0)
        give_up("fork: %s", strerror(errno));
    if (child == 0) {
        size_t inherited = atomic_load(&survivors);
        burst_and_wait("child", 1001); /* the floors are worked out last: sorting touches memory of its own */
        show("child", base);
        atomic_store(&survivors, inherited);
        show("process", base);
        print_figures("idle");
        _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0)
        give_up("the child ended with wait status 0x%x", (unsigned)status);
    _exit(0);
}
