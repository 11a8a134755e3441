/* probe.h - common parts of the probes: parameters, random numbers, clocks, memory figures, one line of JSON.
 *
 * A probe is a small program that puts one pattern to malloc, whichever LD_PRELOAD chooses, and prints
 * {"probe":NAME,"malloc":FILE,"figures":{...}}, where FILE is the library of that malloc. Nothing here allocates: a
 * probe's own memory is static or comes from own_memory(), so that it measures the allocator alone. */
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 64
#define MIB ((size_t)1 << 20)

/* One parameter, given as NAME=NUMBER with an optional k, M or G (powers of 1024). */
struct parameter {
    const char *name;
    uint64_t value; /* what it is unless given */
    const char *about;
};

/* Ends the probe with one sentence. */
static inline _Noreturn void give_up(const char *format, ...)
{
    char text[400];
    va_list values;

    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    dprintf(2, "probe: %s\n", text);
    _exit(1);
}

static inline _Noreturn void wrong_usage(struct parameter *known, const char *word)
{
    dprintf(2, "probe: %s is no NAME=NUMBER of this probe; it takes\n", word);
    for (; known->name; known++)
        dprintf(2, "  %-12s %s (%llu)\n", known->name, known->about, (unsigned long long)known->value);
    _exit(2);
}

/* Sets the values of the table `known`, which ends with an empty entry, from the command line's words. */
static inline void read_parameters(int argc, char **argv, struct parameter *known)
{
    for (int i = 1; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        struct parameter *one = known;
        while (one->name && !(equals && strlen(one->name) == (size_t)(equals - argv[i]) &&
                              strncmp(one->name, argv[i], (size_t)(equals - argv[i])) == 0))
            one++;
        char *end = NULL;
        uint64_t number = equals ? strtoull(equals + 1, &end, 10) : 0;
        if (!one->name || end == equals + 1)
            wrong_usage(known, argv[i]);
        const char *suffix = *end ? strchr("kMG", *end) : NULL;
        if (*end && (!suffix || end[1]))
            wrong_usage(known, argv[i]);
        one->value = suffix ? number << 10 * (*suffix == 'k' ? 1 : *suffix == 'M' ? 2 : 3) : number;
    }
}

/* ---- numbers ---- */

/* xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016).
 * `state` must not be 0. */
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1DULL;
}

/* The upper half of a random number as an index below `count`. */
static inline size_t index_below(uint64_t random, size_t count)
{
    return (size_t)((random >> 32) * (uint64_t)count >> 32);
}

/* The lower half as a number of bytes in min..max. */
static inline size_t size_between(uint64_t random, size_t min, size_t max)
{
    return min + (size_t)((random & 0xffffffff) * (uint64_t)(max - min + 1) >> 32);
}

/* ---- memory and time ---- */

/* Zeroed memory from mmap. Counts in the RSS once touched. */
static inline void *own_memory(size_t bytes)
{
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (start == MAP_FAILED)
        give_up("the kernel refuses %zu bytes: %s", bytes, strerror(errno));
    return start;
}

static inline void give_back_own(void *start, size_t bytes)
{
    if (munmap(start, bytes) != 0)
        give_up("munmap: %s", strerror(errno));
}

/* Seconds of CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID or CLOCK_THREAD_CPUTIME_ID. */
static inline double seconds(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static inline void sleep_seconds(double howlong)
{
    struct timespec rest = {.tv_sec = (time_t)howlong, .tv_nsec = (long)((howlong - (double)(time_t)howlong) * 1e9)};

    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        ;
}

/* Reads a whole small file of /proc into `text` without allocating. */
static inline void read_proc(const char *path, char *text, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t got = 0;
    ssize_t part = 0;

    while (file >= 0 && got < room - 1 && (part = read(file, text + got, room - 1 - got)) > 0)
        got += (size_t)part;
    if (file < 0 || part < 0 || got == 0)
        give_up("%s cannot be read: %s", path, strerror(errno));
    close(file);
    text[got] = 0;
}

/* The number behind `name` in a file of "Name:  123 kB" lines, in bytes. */
static inline size_t proc_bytes(const char *path, const char *name)
{
    char text[8192];

    read_proc(path, text, sizeof text);
    const char *at = strstr(text, name);
    if (!at)
        give_up("%s has no %s", path, name);
    return strtoul(at + strlen(name), NULL, 10) * 1024;
}

static inline size_t rss_bytes(void)
{
    char text[200];
    char *at;

    read_proc("/proc/self/statm", text, sizeof text);
    strtoul(text, &at, 10);
    return strtoul(at, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Not ru_maxrss, which starts from the parent's before exec. */
static inline size_t peak_rss_bytes(void)
{
    return proc_bytes("/proc/self/status", "VmHWM:");
}

static inline size_t private_dirty_bytes(void)
{
    return proc_bytes("/proc/self/smaps_rollup", "Private_Dirty:");
}

/* Wall and CPU time between start_watch and stop_watch. */
struct watch {
    double wall, cpu;
};

static inline struct watch start_watch(void)
{
    return (struct watch){seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID)};
}

static inline struct watch stop_watch(struct watch started)
{
    return (struct watch){seconds(CLOCK_MONOTONIC) - started.wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - started.cpu};
}

/* Wall and CPU time of one thread between start_interval and stop_interval, each measures for itself: the main thread
 * may get no processor for a while. */
struct interval {
    double began, ended, cpu;
};

static inline struct interval start_interval(void)
{
    return (struct interval){.began = seconds(CLOCK_MONOTONIC), .cpu = seconds(CLOCK_THREAD_CPUTIME_ID)};
}

static inline void stop_interval(struct interval *interval)
{
    interval->cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - interval->cpu;
    interval->ended = seconds(CLOCK_MONOTONIC);
}

/* From the first thread's beginning to the last one's end. */
static inline struct watch total(const struct interval *interval, unsigned count)
{
    double began = interval->began, ended = interval->ended, cpu = 0;

    for (unsigned i = 0; i < count; i++) {
        began = interval[i].began < began ? interval[i].began : began;
        ended = interval[i].ended > ended ? interval[i].ended : ended;
        cpu += interval[i].cpu;
    }
    return (struct watch){ended - began, cpu};
}

/* ---- blocks ---- */

/* malloc that must succeed, with the first and the last bytes written as a program would. */
static inline void *take(size_t bytes)
{
    char *block = malloc(bytes);

    if (!block)
        give_up("malloc(%zu) gave nothing", bytes);
    block[0] = (char)bytes;
    block[bytes - 1] = (char)bytes;
    return block;
}

/* Keeps the compiler from dropping writes to a block that is freed next. */
static inline void keep_writes(void *block)
{
    __asm__ volatile("" : : "r"(block) : "memory");
}

/* ---- processes and threads ---- */

/* fork that must succeed. */
static inline pid_t fork_child(void)
{
    pid_t child = fork();

    if (child < 0)
        give_up("fork: %s", strerror(errno));
    return child;
}

/* Ends the probe when the child that prints the figures has ended. */
static inline _Noreturn void end_with(pid_t child)
{
    int status = 0;

    if (waitpid(child, &status, 0) != child || status != 0)
        give_up("the child ended with wait status 0x%x", (unsigned)status);
    _exit(0);
}

static inline pthread_t start_thread(void *(*body)(void *), void *data)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, body, data);

    if (error)
        give_up("pthread_create: %s", strerror(error));
    return thread;
}

static inline void join_thread(pthread_t thread)
{
    int error = pthread_join(thread, NULL);

    if (error)
        give_up("pthread_join: %s", strerror(error));
}

static inline void wait_at(pthread_barrier_t *barrier)
{
    int result = pthread_barrier_wait(barrier);

    if (result && result != PTHREAD_BARRIER_SERIAL_THREAD)
        give_up("pthread_barrier_wait: %s", strerror(result));
}

static inline void make_barrier(pthread_barrier_t *barrier, unsigned count)
{
    int error = pthread_barrier_init(barrier, NULL, count);

    if (error)
        give_up("pthread_barrier_init: %s", strerror(error));
}

static inline uint64_t at_most(uint64_t value, uint64_t limit, const char *name)
{
    if (value < 1 || value > limit)
        give_up("%s must be from 1 to %llu", name, (unsigned long long)limit);
    return value;
}

/* ---- the line of JSON ---- */

static char figures_text[4096];
static size_t figures_length;

static inline void figure_text(const char *name, const char *format, ...)
{
    va_list values;

    figures_length += (size_t)snprintf(figures_text + figures_length, sizeof figures_text - figures_length,
                                       "%s\"%s\":", figures_length ? "," : "", name);
    va_start(values, format);
    figures_length +=
        (size_t)vsnprintf(figures_text + figures_length, sizeof figures_text - figures_length, format, values);
    va_end(values);
    if (figures_length >= sizeof figures_text)
        give_up("more figures than there is room for");
}

static inline void figure(const char *name, double value)
{
    figure_text(name, "%.9g", value);
}

static inline void figure_bytes(const char *name, size_t bytes)
{
    figure_text(name, "%zu", bytes);
}

/* Throughput of `operations` in a measured time. */
static inline void figure_speed(uint64_t operations, struct watch took)
{
    figure("operations_per_second", (double)operations / took.wall);
    figure("cpu_nanoseconds_per_operation", took.cpu * 1e9 / (double)operations);
}

/* Peak of memory beside what the program held at the most. */
static inline void figure_memory(size_t live, size_t base)
{
    size_t peak = peak_rss_bytes();

    figure_bytes("peak_rss_bytes", peak);
    figure_bytes("peak_live_bytes", live);
    figure("peak_over_live", (double)(peak > base ? peak - base : 0) / (double)(live ? live : 1));
}

/* The file of the library whose malloc this program calls. */
static inline const char *malloc_file(void)
{
    Dl_info info;
    void *function = dlsym(RTLD_DEFAULT, "malloc");

    return function && dladdr(function, &info) ? info.dli_fname : "";
}

static inline int print_figures(const char *probe)
{
    if (dprintf(1, "{\"probe\":\"%s\",\"malloc\":\"%s\",\"figures\":{%s}}\n", probe, malloc_file(), figures_text) < 0)
        give_up("cannot write the figures: %s", strerror(errno));
    return 0;
}
