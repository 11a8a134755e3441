#include "limit/watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <ruby.h>
#include <ruby/debug.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/release.h"
#include "reading/ruby_stats.h"
#include "common/thread.h"
#include "limit/backoff.h"
#include "limit/forecast.h"
#include "limit/steering.h"
#include "reading/clock.h"
#include "reading/process.h"
#include "trim/gc_watch.h"

static struct {
    pthread_mutex_t lock; /* for the settings and the usage */
    struct culet_watch_settings settings;
    struct culet_steering steering; /* Ruby threads only */
    struct culet_forecast forecast; /* as above */
    pthread_t thread;
    pid_t pid;   /* of the process that has the thread; 0: none */
    int stop_fd; /* ends the thread's wait */
    _Atomic int stopped;
    _Atomic uint64_t used; /* at the last reading */
    _Atomic uint64_t trims, trimmed_bytes, collections, freed_bytes, readings;
    size_t steered_at; /* number of the last collection that was steered after */
    uint64_t added;    /* to Ruby's count of allocated bytes since the last collection */
    void (*request_steering)(void);
    struct culet_cluster cluster;    /* under the lock, but for its forks */
    struct culet_backoff trimming;   /* the thread notes */
    struct culet_backoff collecting; /* Ruby threads note; pushes ask too */
    struct culet_backoff swept;      /* trims after collections; Ruby threads */
    struct culet_backoff forecasts;  /* collections before the heap grows; Ruby threads */
    double next_push;                /* the thread's; not before then */
    _Atomic double forecast_until;   /* until then collections are not brought forward, by any thread */
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .stop_fd = -1};

static VALUE key_number; /* Symbol for rb_gc_stat: collections so far */
static VALUE key_count;  /* Symbol for rb_gc_stat: bytes allocated since the last collection */
static VALUE key_free;   /* Symbol for rb_gc_stat: free slots; 0: this collector has none */
static VALUE key_total;  /* Symbol for rb_gc_stat: objects allocated so far */
static VALUE key_limit;  /* Symbol for rb_gc_stat: bytes until Ruby collects; 0: this collector has no such limit */

static uint64_t share(uint64_t bytes, unsigned percent)
{
    return bytes / 100 * percent;
}

/* Reads what is in use; exact from `percent` of the limit on, and of this moment if `fresh`. */
static uint64_t read_used(unsigned percent, int fresh)
{
    uint64_t used;

    pthread_mutex_lock(&watch.lock);
    used = culet_usage_read(&watch.settings.usage, share(watch.settings.limit, percent), fresh);
    pthread_mutex_unlock(&watch.lock);
    atomic_fetch_add(&watch.readings, 1);
    if (used != CULET_UNKNOWN)
        atomic_store(&watch.used, used);
    return used;
}

/* What a step has freed, by this process's own memory: the others that count are not idle meanwhile. */
static uint64_t freed_since(uint64_t anonymous)
{
    uint64_t present = culet_anonymous_bytes();

    return anonymous != CULET_UNKNOWN && present != CULET_UNKNOWN && present < anonymous ? anonymous - present : 0;
}

/* Returns free memory. */
static void trim(struct culet_backoff *backoff, uint64_t limit)
{
    double began = culet_clock_seconds(CLOCK_MONOTONIC), ended;
    uint64_t before = culet_anonymous_bytes(), freed;

    culet_release_memory();
    freed = freed_since(before);
    ended = culet_clock_seconds(CLOCK_MONOTONIC);
    atomic_fetch_add(&watch.trims, 1);
    atomic_fetch_add(&watch.trimmed_bytes, freed);
    culet_backoff_note(backoff, ended, (ended - began) * CULET_WATCH_TRIM_SHARE, freed, read_used(0, 1), limit);
}

/* ---- the thread ---- */

/* Adds as much to Ruby's count of allocated bytes as makes the next malloc collect. */
static void push_collection(double time, uint64_t used, uint64_t limit)
{
    if (key_limit == 0 || time < watch.next_push || time < atomic_load(&watch.forecast_until) ||
        (atomic_load(&watch.collecting.vain) != 0 && !culet_backoff_due(&watch.collecting, time, used, limit)))
        return;
    rb_gc_adjust_memory_usage(CULET_STEERING_PUSH_BYTES);
    watch.next_push = time + CULET_STEERING_PUSH_SECONDS;
}

static void wake_ruby(void)
{
    static const uint64_t once = 1;

    (void)!write(watch.settings.wakeup_fd, &once, sizeof(once));
}

/* Acts on a reading. Returns the seconds until the next. */
static double react(uint64_t used, uint64_t limit)
{
    uint64_t alarm = share(limit, CULET_WATCH_ALARM);
    double time = culet_clock_seconds(CLOCK_MONOTONIC), seconds;

    if (used == CULET_UNKNOWN)
        return CULET_WATCH_LONGEST_SECONDS;
    if (used >= share(limit, CULET_WATCH_NEAR) && key_limit != 0)
        watch.request_steering();
    if (used >= alarm) {
        if (!culet_release_found()->in_ruby_threads && culet_release_found()->call != NULL &&
            culet_backoff_due(&watch.trimming, time, used, limit)) {
            trim(&watch.trimming, limit);
            used = atomic_load(&watch.used);
            time = culet_clock_seconds(CLOCK_MONOTONIC);
        }
        if (used >= share(limit, CULET_WATCH_CRITICAL))
            push_collection(time, used, limit);
        if (used >= alarm)
            wake_ruby();
    }
    seconds = used >= alarm ? 0 : (double)(alarm - used) / CULET_WATCH_BYTES_PER_SECOND;
    if (seconds < CULET_WATCH_SHORTEST_SECONDS)
        return CULET_WATCH_SHORTEST_SECONDS;
    return seconds > CULET_WATCH_LONGEST_SECONDS ? CULET_WATCH_LONGEST_SECONDS : seconds;
}

/* Waits for the time, a notification or the end. A descriptor that fails is not waited for again. */
static void wait_for_events(double seconds)
{
    struct pollfd polled[CULET_WATCH_EVENTS + 1] = {{.fd = watch.stop_fd, .events = POLLIN}};
    char drained[512];

    pthread_mutex_lock(&watch.lock);
    for (int i = 0; i < CULET_WATCH_EVENTS; i++)
        polled[i + 1] = (struct pollfd){.fd = watch.settings.events[i], .events = POLLIN | POLLPRI};
    pthread_mutex_unlock(&watch.lock);
    if (poll(polled, CULET_WATCH_EVENTS + 1, (int)(seconds * 1000)) <= 0)
        return;
    pthread_mutex_lock(&watch.lock);
    for (int i = 0; i < CULET_WATCH_EVENTS; i++) {
        struct pollfd *one = &polled[i + 1];
        int gone = (one->revents & (POLLERR | POLLHUP | POLLNVAL)) != 0 && (one->revents & POLLPRI) == 0;

        if (watch.settings.events[i] != one->fd)
            continue;
        if ((one->revents & POLLIN) != 0 && read(one->fd, drained, sizeof(drained)) <= 0)
            gone = 1;
        if (gone)
            watch.settings.events[i] = -1;
    }
    pthread_mutex_unlock(&watch.lock);
}

static void *run(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "culet-limit", 0, 0, 0);
    while (!atomic_load(&watch.stopped)) {
        uint64_t used = read_used(CULET_WATCH_ALARM, 0), limit;

        pthread_mutex_lock(&watch.lock);
        limit = watch.settings.limit;
        pthread_mutex_unlock(&watch.lock);
        wait_for_events(react(used, limit));
    }
    return NULL;
}

static int start_thread(void)
{
    int error;

    if ((watch.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return errno;
    atomic_store(&watch.stopped, 0);
    error = culet_thread_start(&watch.thread, run, NULL);
    if (error == 0) {
        watch.pid = getpid();
    } else {
        close(watch.stop_fd);
        watch.stop_fd = -1;
    }
    return error;
}

/* In a forked child the parent's thread does not exist, and may have held the lock. */
static void forget_parent(void)
{
    if (watch.pid == 0 || watch.pid == getpid())
        return;
    pthread_mutex_init(&watch.lock, NULL);
    culet_cluster_reset(&watch.cluster);
    if (watch.stop_fd >= 0)
        close(watch.stop_fd);
    watch.stop_fd = -1;
    watch.pid = 0;
}

int culet_watch_start(const struct culet_watch_settings *settings)
{
    int error = 0;

    forget_parent();
    pthread_mutex_lock(&watch.lock);
    if (watch.cluster.count == 0)
        culet_cluster_reset(&watch.cluster);
    watch.settings = *settings;
    watch.settings.usage.cluster = &watch.cluster;
    watch.steered_at = SIZE_MAX;
    pthread_mutex_unlock(&watch.lock);
    if (watch.pid == 0)
        error = start_thread();
    return error;
}

int culet_watch_runs(void)
{
    return watch.pid == getpid() && !atomic_load(&watch.stopped);
}

void culet_watch_stop(void)
{
    static const uint64_t once = 1;

    forget_parent();
    if (watch.pid == 0)
        return;
    atomic_store(&watch.stopped, 1);
    (void)!write(watch.stop_fd, &once, sizeof(once));
    pthread_join(watch.thread, NULL);
    close(watch.stop_fd);
    watch.stop_fd = -1;
    watch.pid = 0;
    watch.steering = (struct culet_steering){0};
}

struct culet_watch_counts culet_watch_counts(void)
{
    return (struct culet_watch_counts){
        .used = atomic_load(&watch.used),
        .trims = atomic_load(&watch.trims),
        .trimmed_bytes = atomic_load(&watch.trimmed_bytes),
        .collections = atomic_load(&watch.collections),
        .freed_bytes = atomic_load(&watch.freed_bytes),
        .tightened = watch.steering.tightened,
        .budget = watch.steering.tight ? watch.steering.budget : 0,
        .readings = atomic_load(&watch.readings),
    };
}

int culet_watch_full(uint64_t bytes)
{
    uint64_t used;

    if (watch.pid == 0 || atomic_load(&watch.used) < share(watch.settings.limit, CULET_WATCH_NEAR))
        return 0;
    used = read_used(CULET_WATCH_ALARM, 1);
    return used != CULET_UNKNOWN && used >= bytes;
}

uint64_t culet_watch_used(void)
{
    return watch.pid == getpid() ? read_used(0, 1) : CULET_UNKNOWN;
}

int culet_watch_list(const pid_t *workers, unsigned count, unsigned forks)
{
    int error;

    pthread_mutex_lock(&watch.lock);
    error = culet_cluster_list(&watch.cluster, workers, count, forks);
    pthread_mutex_unlock(&watch.lock);
    return error;
}

void culet_watch_fork(void)
{
    culet_cluster_fork(&watch.cluster);
}

unsigned culet_watch_forks(void)
{
    return atomic_load(&watch.cluster.forks);
}

/* ---- after collections ---- */

static VALUE start_event; /* the TracePoint of `on_start`, enabled while the budget is not Ruby's */

/* Ends a sweep in progress, so that what it frees can be returned. */
static void finish_sweep(void)
{
    if (!culet_gc_swept() && !RTEST(rb_gc_disable()))
        rb_gc_enable();
}

static void adjust(int64_t bytes)
{
    if (bytes != 0)
        rb_gc_adjust_memory_usage((ssize_t)bytes);
}

/* Sets Ruby's count of allocated bytes so that it collects after the budget. */
static void set_count(uint64_t count)
{
    uint64_t ruby = rb_gc_stat(key_limit);
    uint64_t wanted = ruby > watch.steering.budget ? ruby - watch.steering.budget : 0;

    if (wanted <= count)
        return;
    watch.added += wanted - count;
    adjust((int64_t)(wanted - count));
}

/*
 * During GC, when a collection starts and has set Ruby's count to zero. What was added before is taken back: it also
 * counts for the next major collection, and was no garbage. An incremental collection marks between allocations, so the
 * job alone would be too late.
 */
static void on_start(VALUE event, void *unused)
{
    uint64_t added = watch.added;

    (void)event;
    (void)unused;
    if (watch.pid != getpid())
        return;
    watch.added = 0;
    adjust(-(int64_t)added);
    set_count(0);
    watch.request_steering();
}

/* The sweep has subtracted what it freed from the count. */
static void apply(void)
{
    VALUE enabled = rb_tracepoint_enabled_p(start_event);

    if (watch.steering.tight && !RTEST(enabled))
        rb_tracepoint_enable(start_event);
    else if (!watch.steering.tight && RTEST(enabled))
        rb_tracepoint_disable(start_event);
    if (watch.steering.tight) {
        finish_sweep();
        set_count(rb_gc_stat(key_count));
    } else {
        adjust(-(int64_t)watch.added);
        watch.added = 0;
    }
}

int culet_watch_collection(void)
{
    return watch.pid != 0 && key_limit != 0;
}

/* Returns what the last collection freed, unless that would take too much of the time. Returns whether it did. */
static int trim_swept(uint64_t limit)
{
    if (!culet_backoff_due(&watch.swept, culet_clock_seconds(CLOCK_MONOTONIC), atomic_load(&watch.used), limit) ||
        culet_release_found()->call == NULL)
        return 0;
    trim(&watch.swept, limit);
    return 1;
}

/* A collection of old objects too, with an immediate sweep. */
static void collect(uint64_t limit)
{
    double began = culet_clock_seconds(CLOCK_MONOTONIC), ended;
    uint64_t before, freed;

    if (!culet_backoff_due(&watch.collecting, began, atomic_load(&watch.used), limit))
        return;
    before = culet_anonymous_bytes();
    rb_gc_start();
    if (culet_release_found()->call != NULL)
        culet_release_memory();
    freed = freed_since(before);
    ended = culet_clock_seconds(CLOCK_MONOTONIC);
    atomic_fetch_add(&watch.collections, 1);
    atomic_fetch_add(&watch.freed_bytes, freed);
    culet_backoff_note(&watch.collecting, ended, (ended - began) * CULET_WATCH_COLLECTION_SHARE, freed, read_used(0, 1),
                       limit);
}

/*
 * At a job, before Ruby's heap grows beyond what fits: a collection now leaves the slots that the program needs until
 * the next job. In the middle of a call of C no job could run, and more objects would live.
 */
static void collect_before_growth(uint64_t limit)
{
    uint64_t most = share(limit, CULET_FORECAST_MOST), free = rb_gc_stat(key_free), used, freed;
    uint64_t growth = culet_forecast_growth(&watch.forecast, rb_gc_stat(key_total), free);
    double began = culet_clock_seconds(CLOCK_MONOTONIC), ended;

    if (growth == 0 || began < atomic_load(&watch.forecasts.soonest))
        return;
    used = read_used(0, 1);
    if (used == CULET_UNKNOWN || used + growth < most || !culet_backoff_due(&watch.forecasts, began, used, limit))
        return;
    rb_gc_start();
    ended = culet_clock_seconds(CLOCK_MONOTONIC);
    freed = rb_gc_stat(key_free);
    freed = freed > free ? (freed - free) * CULET_FORECAST_OBJECT_BYTES : 0;
    culet_backoff_note(&watch.forecasts, ended, (ended - began) * CULET_WATCH_FORECAST_SHARE, freed, read_used(0, 1),
                       limit);
    atomic_store(&watch.forecast_until,
                 atomic_load(&watch.forecasts.vain) == 0 ? ended + (ended - began) * CULET_WATCH_TRIM_SHARE : 0);
    atomic_fetch_add(&watch.collections, 1);
    if (used > atomic_load(&watch.used))
        atomic_fetch_add(&watch.freed_bytes, used - atomic_load(&watch.used));
}

/*
 * Decides with the sweep ended. After a collection before growth the budget is not small: tables that young objects
 * have in Ruby's own heap move to malloc (up to Ruby 3.2), and would make Ruby collect at once.
 */
static void steer(uint64_t limit)
{
    uint64_t trims = atomic_load(&watch.trims), used;
    int exceeded = trims != watch.steering.trims; /* the thread found more in use than was expected */

    if (watch.steering.tight)
        finish_sweep();
    used = read_used(0, 1);
    if (used == CULET_UNKNOWN)
        return;
    if (culet_steering_room(limit, used) == 0) {
        finish_sweep();
        exceeded |= trim_swept(limit); /* without a trim the memory stays what it is, however small the budget */
        if (atomic_load(&watch.used) >= share(limit, CULET_WATCH_CRITICAL))
            collect(limit);
    }
    culet_steering_update(&watch.steering, limit, atomic_load(&watch.used), rb_gc_stat(key_limit), exceeded);
    watch.steering.trims = atomic_load(&watch.trims);
    if (watch.steering.tight && watch.steering.budget < limit / 4 &&
        culet_clock_seconds(CLOCK_MONOTONIC) < atomic_load(&watch.forecast_until))
        watch.steering.budget = limit / 4;
    apply();
}

void culet_watch_steer(void)
{
    static int active; /* a collection in here calls this again */
    uint64_t limit = watch.settings.limit, ruby;

    if (active || watch.pid != getpid() || key_limit == 0)
        return;
    if (watch.steering.tight && key_free != 0 && key_total != 0) {
        active = 1;
        collect_before_growth(limit);
        active = 0;
    }
    /* a collection requests it at its start and when it marks; once is enough */
    if (watch.steered_at == rb_gc_stat(key_number))
        return;
    watch.steered_at = rb_gc_stat(key_number);
    ruby = rb_gc_stat(key_limit);
    if (culet_steering_far(&watch.steering, limit, atomic_load(&watch.used), ruby))
        return;
    active = 1;
    steer(limit);
    active = 0;
}

void culet_watch_prepare(void (*request_steering)(void))
{
    key_limit = culet_ruby_stat_key("malloc_increase_bytes_limit");
    key_number = culet_ruby_stat_key("count");
    key_count = culet_ruby_stat_key("malloc_increase_bytes");
    if (key_count == 0 || key_number == 0)
        key_limit = 0;
    key_free = culet_ruby_stat_key("heap_free_slots");
    key_total = culet_ruby_stat_key("total_allocated_objects");
    watch.request_steering = request_steering;
    start_event = rb_tracepoint_new(0, RUBY_INTERNAL_EVENT_GC_START, on_start, NULL);
    rb_gc_register_mark_object(start_event);
}
