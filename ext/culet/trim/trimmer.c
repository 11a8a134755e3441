#include "trim/trimmer.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/release.h"
#include "common/sleeper.h"
#include "reading/clock.h"
#include "reading/process.h"

/* Counts of collections. Written by culet_trimmer_collection. */
static struct {
    _Atomic uint64_t all;
    _Atomic uint64_t majors;
    _Atomic uint64_t swept; /* majors whose sweep has certainly ended */
} seen;

static struct {
    pthread_mutex_t trim_lock;  /* held during a trim */
    pthread_mutex_t stats_lock; /* for the members below; held briefly, taken after trim_lock */
    struct culet_trim_policy policy;
    struct culet_trimmer_stats stats;
    _Atomic uint64_t attempted; /* majors that need another trim only if their sweep has ended since */
    _Atomic uint64_t completed; /* majors that need no further trim */
    struct culet_sleeper thread;
} trimmer = {.trim_lock = PTHREAD_MUTEX_INITIALIZER, .stats_lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- cost of a page fault ---- */

#define PROBE_BYTES ((size_t)1 << 20)

/* Limits for 4 KiB, from small virtual machines and large servers, against clock errors. */
#define LEAST_PAGE_SECONDS 0.2e-6
#define MOST_PAGE_SECONDS 10e-6

/* CPU time to fault a returned byte in again, which differs twentyfold between machines. Doubled, because the
 * page is also lost from the CPU caches. */
static double measure_refault(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    double began = culet_clock_seconds(CLOCK_THREAD_CPUTIME_ID), seconds;
    volatile char *bytes = mmap(NULL, PROBE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (bytes == MAP_FAILED)
        return MOST_PAGE_SECONDS / 4096;
    (void)madvise((void *)bytes, PROBE_BYTES, MADV_NOHUGEPAGE); /* as Ruby's heap; may fail */
    for (size_t i = 0; i < PROBE_BYTES; i += page)
        bytes[i] = 1;
    (void)munmap((void *)bytes, PROBE_BYTES);
    seconds = 2 * (culet_clock_seconds(CLOCK_THREAD_CPUTIME_ID) - began) / (double)(PROBE_BYTES / 4096);
    if (seconds < LEAST_PAGE_SECONDS)
        seconds = LEAST_PAGE_SECONDS;
    if (seconds > MOST_PAGE_SECONDS)
        seconds = MOST_PAGE_SECONDS;
    return seconds / 4096;
}

/* ---- a trim ---- */

/* A trim that ran. */
struct trim {
    double began, ended, processor_seconds;
    uint64_t before, after; /* resident bytes */
};

/* Updates policy and statistics. Returns the bytes returned. Requires stats_lock. */
static uint64_t record(const struct trim *trim)
{
    struct culet_trimmer_stats *stats = &trimmer.stats;
    uint64_t returned = trim->before > trim->after ? trim->before - trim->after : 0;
    double seconds = trim->ended - trim->began;

    stats->refaulted_bytes += culet_trim_policy_refaulted(&trimmer.policy, trim->before);
    culet_trim_policy_record(&trimmer.policy, trim->ended, trim->processor_seconds, trim->before, trim->after);
    stats->trims++;
    stats->returned_bytes += returned;
    stats->seconds += seconds;
    if (seconds > stats->longest_seconds)
        stats->longest_seconds = seconds;
    return returned;
}

/* Requires trim_lock. */
static struct trim run_trim(void)
{
    struct trim trim;
    double processor;

    if (trimmer.policy.refault_seconds_per_byte == 0)
        trimmer.policy.refault_seconds_per_byte = measure_refault();
    processor = culet_clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    trim.before = culet_resident_bytes();
    trim.began = culet_clock_seconds(CLOCK_MONOTONIC);
    culet_release_memory();
    trim.ended = culet_clock_seconds(CLOCK_MONOTONIC);
    trim.after = culet_resident_bytes();
    trim.processor_seconds = culet_clock_seconds(CLOCK_THREAD_CPUTIME_ID) - processor;
    if (trim.before == CULET_UNKNOWN || trim.after == CULET_UNKNOWN)
        trim.before = trim.after = 0;
    return trim;
}

/* A request for a trim, and the state once it is complete. */
struct trim_request {
    int wanted;
    int swept;          /* a major's sweep has ended since the last trim */
    uint64_t attempted; /* the new values for the trimmer */
    uint64_t completed;
};

/* idle: the last major is old enough to be trimmed without knowing about its sweep. ended: its sweep has ended. */
static struct trim_request pending_request(int idle, int ended)
{
    uint64_t majors = atomic_load(&seen.majors), swept = ended ? majors : atomic_load(&seen.swept);
    struct trim_request trim_request = {.attempted = idle ? majors : swept, .completed = swept};

    trim_request.swept = swept > atomic_load(&trimmer.completed);
    trim_request.wanted = trim_request.swept || majors > atomic_load(&trimmer.attempted);
    return trim_request;
}

static void complete(const struct trim_request *trim_request)
{
    atomic_store(&trimmer.attempted, trim_request->attempted);
    atomic_store(&trimmer.completed, trim_request->completed);
}

/* A trim of an idle program that returned memory may have run during a slow sweep, so the request stays pending. */
static uint64_t trim_for_request(const struct trim_request *trim_request)
{
    uint64_t returned;
    struct trim trim;

    pthread_mutex_lock(&trimmer.trim_lock);
    trim = run_trim();
    pthread_mutex_lock(&trimmer.stats_lock);
    returned = record(&trim);
    pthread_mutex_unlock(&trimmer.stats_lock);
    if (trim_request->swept || returned < trimmer.policy.settings.minimum_bytes)
        complete(trim_request);
    pthread_mutex_unlock(&trimmer.trim_lock);
    return returned;
}

uint64_t culet_trimmer_trim(int swept)
{
    struct trim_request trim_request = pending_request(swept, swept);

    return trim_for_request(&trim_request);
}

/* Skips the trim if the allocator reports less than the minimum. */
static void trim_if_worthwhile(const struct trim_request *trim_request)
{
    if (culet_release_estimate() >= trimmer.policy.settings.minimum_bytes) {
        trim_for_request(trim_request);
        return;
    }
    pthread_mutex_lock(&trimmer.stats_lock);
    trimmer.stats.skipped++;
    pthread_mutex_unlock(&trimmer.stats_lock);
    complete(trim_request);
}

/* The time at which the requested trim is due. */
static double read_due(int swept, double idle_since)
{
    uint64_t resident = culet_resident_bytes();
    double due;

    pthread_mutex_lock(&trimmer.stats_lock);
    due = culet_trim_policy_due(&trimmer.policy, resident == CULET_UNKNOWN ? 0 : resident, swept, idle_since);
    pthread_mutex_unlock(&trimmer.stats_lock);
    return due;
}

/* Without a thread no later trim can be scheduled, so the program counts as idle. If the sweep has already ended, the
 * program asked for a full collection (GC.start), and no further collection may follow: trim in any case. */
int culet_trimmer_trim_if_due(int swept)
{
    struct trim_request trim_request = pending_request(swept, swept);
    double time = culet_clock_seconds(CLOCK_MONOTONIC);

    if (!trim_request.swept || (!swept && read_due(1, -HUGE_VAL) > time))
        return 0;
    trim_if_worthwhile(&trim_request);
    return 1;
}

int culet_trimmer_pending(int swept)
{
    struct trim_request trim_request = pending_request(0, 0); /* a trim of an idle program counts */
    uint64_t resident;
    int is_ineffective;

    if (!trim_request.wanted || !(swept || trim_request.swept))
        return 0;
    if (pthread_mutex_trylock(&trimmer.trim_lock) != 0)
        return 0; /* a trim is running */
    pthread_mutex_unlock(&trimmer.trim_lock);
    resident = culet_resident_bytes();
    pthread_mutex_lock(&trimmer.stats_lock);
    is_ineffective = culet_trim_policy_is_ineffective(&trimmer.policy, resident == CULET_UNKNOWN ? 0 : resident);
    pthread_mutex_unlock(&trimmer.stats_lock);
    return !is_ineffective;
}

/* ---- the thread ---- */

/* Trims if a trim is due. Otherwise returns the nanoseconds to wait. */
static uint64_t trim_or_wait(uint64_t *collections, double *idle_since)
{
    uint64_t all = atomic_load(&seen.all);
    double time = culet_clock_seconds(CLOCK_MONOTONIC), due;
    struct trim_request trim_request;

    if (all != *collections) {
        *collections = all;
        *idle_since = time;
    }
    trim_request = pending_request(culet_trim_policy_is_idle(*idle_since, time), 0);
    if (!trim_request.wanted)
        return CULET_UNTIL_WOKEN;
    due = read_due(trim_request.swept, *idle_since);
    if (due > time)
        return (uint64_t)((due - time) * 1e9);
    trim_if_worthwhile(&trim_request);
    return 0;
}

static void *run_thread(void *unused)
{
    uint64_t collections = 0;
    double idle_since = 0;

    prctl(PR_SET_NAME, "culet-trim", 0, 0, 0);
    while (!atomic_load(&trimmer.thread.ended)) {
        uint32_t wakeups_seen = atomic_load(&trimmer.thread.wakeups);
        uint64_t wait = trim_or_wait(&collections, &idle_since);
        if (wait != 0 && !atomic_load(&trimmer.thread.ended))
            culet_sleeper_sleep(&trimmer.thread, wakeups_seen, wait);
    }
    return NULL;
}

int culet_trimmer_start(void)
{
    if (atomic_load(&trimmer.thread.ended) || !culet_sleeper_claim(&trimmer.thread))
        return 0;
    return culet_sleeper_start(&trimmer.thread, run_thread, NULL);
}

int culet_trimmer_runs(void)
{
    return culet_sleeper_runs(&trimmer.thread);
}

void culet_trimmer_end(void)
{
    (void)culet_sleeper_end(&trimmer.thread);
}

/* ---- collections and statistics ---- */

int culet_trimmer_collection(int major)
{
    uint64_t majors = atomic_load(&seen.majors);
    int changed = major;

    atomic_fetch_add(&seen.all, 1);
    if (atomic_load(&seen.swept) != majors) {
        atomic_store(&seen.swept, majors);
        changed = 1;
    }
    if (major)
        atomic_store(&seen.majors, majors + 1);
    if (changed && culet_trimmer_runs())
        culet_sleeper_wake(&trimmer.thread);
    return pending_request(0, 0).wanted;
}

void culet_trimmer_swept(void)
{
    uint64_t majors = atomic_load(&seen.majors);

    if (atomic_exchange(&seen.swept, majors) != majors && culet_trimmer_runs())
        culet_sleeper_wake(&trimmer.thread);
}

uint64_t culet_trimmer_totals(uint64_t *returned)
{
    uint64_t trims;

    pthread_mutex_lock(&trimmer.stats_lock);
    trims = trimmer.stats.trims;
    *returned = trimmer.stats.returned_bytes;
    pthread_mutex_unlock(&trimmer.stats_lock);
    return trims;
}

struct culet_trimmer_stats culet_trimmer_stats(void)
{
    uint64_t resident = culet_resident_bytes();
    struct culet_trimmer_stats stats;

    pthread_mutex_lock(&trimmer.stats_lock);
    stats = trimmer.stats;
    if (resident != CULET_UNKNOWN)
        stats.refaulted_bytes += culet_trim_policy_refaulted(&trimmer.policy, resident);
    stats.interval_seconds = culet_trim_policy_interval(&trimmer.policy, resident == CULET_UNKNOWN ? 0 : resident);
    pthread_mutex_unlock(&trimmer.stats_lock);
    stats.requested = atomic_load(&seen.majors);
    stats.has_thread = culet_trimmer_runs();
    return stats;
}

/* ---- fork ---- */

/* A child has no threads of its parent and its own memory, so all counts restart. Its thread starts at the
 * first major collection; most children end earlier. */
static void reset_in_child(void)
{
    pthread_mutex_init(&trimmer.trim_lock, NULL);
    pthread_mutex_init(&trimmer.stats_lock, NULL);
    trimmer.policy = (struct culet_trim_policy){.settings = trimmer.policy.settings,
                                                .refault_seconds_per_byte = trimmer.policy.refault_seconds_per_byte};
    memset(&trimmer.stats, 0, sizeof(trimmer.stats));
    atomic_store(&trimmer.attempted, 0);
    atomic_store(&trimmer.completed, 0);
    atomic_store(&seen.majors, 0);
    atomic_store(&seen.swept, 0);
    atomic_store(&seen.all, 0);
    (void)culet_sleeper_forget(&trimmer.thread);
}

int culet_trimmer_prepare(const struct culet_trim_settings *settings)
{
    static int prepared;
    int error;

    trimmer.policy.settings = *settings;
    if (prepared)
        return 0;
    if ((error = pthread_atfork(NULL, NULL, reset_in_child)) == 0)
        prepared = 1;
    return error;
}
