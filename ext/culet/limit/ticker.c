#include "limit/ticker.h"

#include <ruby.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/release.h"
#include "common/sleeper.h"
#include "limit/collector.h"
#include "limit/steering.h"
#include "reading/clock.h"

/* The interval between two readings: the time in which a program that allocates 1 GiB a second uses up the headroom, so
 * that a program far from its limit is read twice a second. */
#define BYTES_PER_SECOND ((double)(1 << 30))
#define SHORTEST_SECONDS 0.004
#define LONGEST_SECONDS 0.5

static struct culet_limit_state *const state = &culet_limit_state;

static struct culet_sleeper ticker;

/* State of the native thread. */
static struct {
    struct culet_backoff trimming;
    double next_push; /* not before then */
} own;

/* ---- the thread ---- */

/* Raises Ruby's count of allocated bytes, so that the next malloc collects. */
static void push_collection(double time, uint64_t used, uint64_t limit)
{
    if (time < own.next_push || !culet_collector_may_push(time, used, limit))
        return;
    rb_gc_adjust_memory_usage(CULET_STEERING_PUSH_BYTES);
    own.next_push = time + CULET_STEERING_PUSH_SECONDS;
}

static void wake_ruby(void)
{
    static const uint64_t once = 1;

    pthread_mutex_lock(&state->lock);
    (void)!write(state->settings.wakeup_fd, &once, sizeof(once));
    pthread_mutex_unlock(&state->lock);
}

/* Acts on a reading. Returns the seconds until the next reading. */
static double react(uint64_t used, uint64_t limit)
{
    uint64_t alarm = culet_limit_part(limit, CULET_LIMIT_ALARM);
    double time = culet_clock_seconds(CLOCK_MONOTONIC), seconds;

    if (used == CULET_UNKNOWN)
        return LONGEST_SECONDS;
    if (used >= culet_limit_part(limit, CULET_LIMIT_NEAR))
        culet_collector_request();
    if (used >= alarm) {
        if (!culet_release_found()->in_ruby_threads && culet_release_found()->call != NULL &&
            culet_backoff_due(&own.trimming, time, used, limit)) {
            culet_limit_trim(&own.trimming, limit);
            used = atomic_load(&state->used);
            time = culet_clock_seconds(CLOCK_MONOTONIC);
        }
        if (used >= culet_limit_part(limit, CULET_LIMIT_CRITICAL))
            push_collection(time, used, limit);
        if (used >= alarm)
            wake_ruby();
    }
    seconds = used >= alarm ? 0 : (double)(alarm - used) / BYTES_PER_SECOND;
    if (seconds < SHORTEST_SECONDS)
        return SHORTEST_SECONDS;
    return seconds > LONGEST_SECONDS ? LONGEST_SECONDS : seconds;
}

static void *run(void *unused)
{
    prctl(PR_SET_NAME, "culet-limit", 0, 0, 0);
    while (!atomic_load(&ticker.ended)) {
        uint32_t wakeups = atomic_load(&ticker.wakeups);
        uint64_t used = culet_limit_read_used(CULET_LIMIT_ALARM, 0), limit;
        double seconds;

        pthread_mutex_lock(&state->lock);
        limit = state->settings.limit;
        pthread_mutex_unlock(&state->lock);
        seconds = react(used, limit);
        if (!atomic_load(&ticker.ended))
            culet_sleeper_sleep(&ticker, wakeups, (uint64_t)(seconds * 1e9));
    }
    return NULL;
}

/* A forked child lacks the parent's thread, which may have held the lock. */
static void forget_parent(void)
{
    if (state->pid == 0 || state->pid == getpid())
        return;
    pthread_mutex_init(&state->lock, NULL);
    culet_cluster_reset(&state->cluster);
    (void)culet_sleeper_forget(&ticker);
    state->pid = 0;
}

int culet_limit_ticker_start(const struct culet_limit_settings *settings)
{
    int error;

    forget_parent();
    pthread_mutex_lock(&state->lock);
    if (state->cluster.count == 0)
        culet_cluster_reset(&state->cluster);
    state->settings = *settings;
    pthread_mutex_unlock(&state->lock);
    culet_collector_reset();
    if (!culet_sleeper_claim(&ticker))
        return 0;
    atomic_store(&ticker.ended, false);
    if ((error = culet_sleeper_start(&ticker, run, NULL)) == 0)
        state->pid = getpid();
    return error;
}

void culet_limit_ticker_stop(void)
{
    forget_parent();
    if (!culet_sleeper_end(&ticker))
        return;
    state->pid = 0;
    culet_collector_stop();
}
