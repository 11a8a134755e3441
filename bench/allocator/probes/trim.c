/* trim.c - a trim: its time per 100 MB, the memory returned, and the longest wait of another thread in malloc or free.
 *
 * Half of a heap of `bytes` is freed, by stretches of `stretch` bytes; then the allocator trims: by malloc_trim where it
 * has one of its own, else by its own function of that kind. */
#define _GNU_SOURCE
#include "probe.h"

#include <dlfcn.h>
#include <sys/resource.h>

/* Times are per 100 MB of the heap before the trim, all of which an allocator must look through. */
static struct parameter parameters[] = {
    {"bytes", 512 * MIB, "heap before half of it is freed"},
    {"stretch", 4 * MIB, "bytes of neighbouring blocks that are freed together"},
    {"min", 64, "smallest block in bytes"},
    {"max", 1024, "largest block in bytes"},
    {0},
};
enum { BYTES, STRETCH, MIN, MAX };

/* ---- the allocator's way to trim ---- */

static void *own_function(const char *name)
{
    Dl_info of_malloc, of_function;
    void *function = dlsym(RTLD_DEFAULT, name);
    bool known = function && dladdr(dlsym(RTLD_DEFAULT, "malloc"), &of_malloc) && dladdr(function, &of_function);

    return known && of_malloc.dli_fbase == of_function.dli_fbase ? function : NULL;
}

/* Trims; false when the allocator has no way to. */
static bool trim(void)
{
    int (*malloc_trim)(size_t) = (int (*)(size_t))own_function("malloc_trim");
    void (*release)(void) = (void (*)(void))own_function("MallocExtension_ReleaseFreeMemory");
    void (*collect)(bool) = (void (*)(bool))own_function("mi_collect");
    int (*control)(const char *, void *, size_t *, void *, size_t) =
        (int (*)(const char *, void *, size_t *, void *, size_t))own_function("mallctl");

    if (malloc_trim)
        malloc_trim(0);
    else if (release)
        release();
    else if (collect)
        collect(true);
    else if (control) /* 4096 is MALLCTL_ARENAS_ALL */
        return control("thread.tcache.flush", NULL, NULL, NULL, 0) == 0 &&
               control("arena.4096.purge", NULL, NULL, NULL, 0) == 0;
    else
        return false;
    return true;
}

/* ---- the waiting thread ---- */

/* A free and malloc during which the thread was only preempted (involuntary switches) waited for a processor, not for
 * the allocator; one that slept (voluntary switches) waited for a lock or the kernel. */
static atomic_bool watching, finished;
static double longest;

#define SHORT 20e-6 /* seconds: no switch to another thread and back takes less */

static void consider(double waited, const struct rusage *before, const struct rusage *after)
{
    bool slept = after->ru_nvcsw != before->ru_nvcsw, preempted = after->ru_nivcsw != before->ru_nivcsw;

    if ((slept || !preempted) && waited > longest)
        longest = waited;
}

static void *work(void *data)
{
    uint64_t random = 99;
    struct rusage before, after;
    void *block[64] = {NULL};
    (void)data;

    getrusage(RUSAGE_THREAD, &before);
    for (double began = seconds(CLOCK_MONOTONIC); !atomic_load_explicit(&finished, memory_order_relaxed);) {
        uint64_t some = next_random(&random);
        void **slot = &block[some % 64];
        free(*slot);
        *slot = take(size_between(some, 16, 4096));
        double now = seconds(CLOCK_MONOTONIC), waited = now - began;
        began = now;
        if (waited < SHORT)
            continue;
        getrusage(RUSAGE_THREAD, &after);
        if (atomic_load_explicit(&watching, memory_order_relaxed))
            consider(waited, &before, &after);
        before = after;
        began = seconds(CLOCK_MONOTONIC);
    }
    return NULL;
}

static void start_watching(void)
{
    sleep_seconds(0.02); /* an operation that began before is over */
    longest = 0;
    atomic_store(&watching, true);
}

static void stop_watching(const char *name)
{
    sleep_seconds(0.005); /* one that began meanwhile counts */
    atomic_store(&watching, false);
    sleep_seconds(0.02);
    figure(name, longest);
}

/* CPU seconds of one madvise over so many written bytes. */
static double kernel_seconds(size_t bytes)
{
    char *memory = own_memory(bytes);

    memset(memory, 1, bytes);
    double began = seconds(CLOCK_THREAD_CPUTIME_ID);
    if (madvise(memory, bytes, MADV_DONTNEED) != 0)
        give_up("madvise: %s", strerror(errno));
    double took = seconds(CLOCK_THREAD_CPUTIME_ID) - began;
    give_back_own(memory, bytes);
    return took;
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    size_t min = at_most(parameters[MIN].value, parameters[MAX].value, "min"), max = parameters[MAX].value;
    size_t stretch = at_most(parameters[STRETCH].value, parameters[BYTES].value, "stretch");
    size_t room = (parameters[BYTES].value / min + 1) * sizeof(void *), count = 0, sum = 0;
    void **block = own_memory(room);
    uint64_t random = 1, replay = 1;

    for (; sum < parameters[BYTES].value; count++) {
        size_t bytes = size_between(next_random(&random), min, max);
        block[count] = take(bytes);
        memset(block[count], 1, bytes);
        sum += bytes;
    }
    pthread_t worker = start_thread(work, NULL);
    sum = 0;
    for (size_t i = 0; i < count; i++) {
        size_t bytes = size_between(next_random(&replay), min, max);
        if (sum / stretch % 2)
            free(block[i]);
        sum += bytes;
    }
    size_t before = rss_bytes();
    start_watching();
    double began = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    bool able = trim();
    double took = seconds(CLOCK_MONOTONIC) - began;
    cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    stop_watching("longest_wait_seconds");
    size_t after = rss_bytes();

    /* The other thread's waits without a trim, for as long, with this thread as busy. */
    start_watching();
    for (double until = seconds(CLOCK_MONOTONIC) + took; seconds(CLOCK_MONOTONIC) < until;)
        ;
    stop_watching("longest_wait_without_trim_seconds");
    atomic_store(&finished, true);
    join_thread(worker);

    figure_text("able", able ? "true" : "false");
    figure_bytes("rss_after_bytes", after);
    if (before > after + MIB)
        figure("kernel_milliseconds_per_100mb",
               kernel_seconds(before - after) * 1e3 / ((double)parameters[BYTES].value / 1e8));
    figure("cpu_milliseconds_per_100mb", able ? cpu * 1e3 / ((double)parameters[BYTES].value / 1e8) : 0);
    print_figures("trim");
    _exit(0);
}
