#include "profile/windows.h"

#include <math.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/sleeper.h"
#include "reading/clock.h"

/* Nanoseconds. */
#define WINDOW_TIME UINT64_C(250000)
#define GAP_TIME UINT64_C(25000000)  /* between two windows, on average */
#define HOOK_TIME UINT64_C(60)       /* what the hook adds to an allocation */
#define MOST_HOOK (3 * WINDOW_TIME)  /* or a processor on which it adds less would never end a window */
#define FIRST_WAIT UINT64_C(1000000) /* for Ruby, see wait_for_ruby */
#define LAST_WAIT CULET_SECOND

#define COST_SHARE 0.002  /* of a core, for all that a window costs */
#define EARLY_SHARE 0.005 /* of early ones */
#define AVERAGED 64       /* windows in the averages */
/* So that a short profile has enough windows: */
#define FIRST 64  /* at the start, closer to each other, whatever they cost */
#define EARLY 512 /* at the start, with a share of their own */

static struct {
    culet_windows_trigger *trigger;
    struct culet_sleeper thread;
    _Atomic bool wanted;
    _Atomic bool waiting;       /* the thread waits for a job to run */
    _Atomic uint32_t jobs;      /* that have run */
    _Atomic uint64_t opened_at; /* of the last window */
    _Atomic uint64_t closes;    /* when the window closes, without the next two */
    _Atomic uint64_t hook_time; /* of the hook, in the window */
    _Atomic uint64_t span_time; /* of jobs and stacks, in the window */
    _Atomic double share;       /* of the time that windows cover */
    double mean_cost;           /* of a window */
    unsigned opened;            /* so far, at most EARLY; the thread's */
    _Atomic uint64_t cost;      /* processor time of jobs, stacks and the thread of the objects */
    uint64_t random;            /* of the jobs */
} windows;

/* ---- numbers ---- */

/* xorshift64* */
double culet_windows_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return ((double)(*state * UINT64_C(0x2545f4914f6cdd1d) >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
}

uint64_t culet_windows_seed(void)
{
    return (culet_clock(CLOCK_MONOTONIC) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)getpid() << 32) | 1;
}

double culet_windows_share(void)
{
    return atomic_load(&windows.share);
}

/* ---- windows ---- */

/* The time of the hook and the jobs is no part of a window: otherwise code that allocates much would get shorter
 * windows than the rest. */
static uint64_t closing_time(void)
{
    uint64_t hook_time = atomic_load(&windows.hook_time);

    return atomic_load(&windows.closes) + (hook_time < MOST_HOOK ? hook_time : MOST_HOOK) +
           atomic_load(&windows.span_time);
}

static void open_window(uint64_t time, uint64_t duration)
{
    atomic_store(&windows.hook_time, 0);
    atomic_store(&windows.span_time, 0);
    atomic_store(&windows.opened_at, time);
    atomic_store(&windows.closes, time + duration);
    atomic_store(&windows.wanted, true);
}

static void close_window(void)
{
    if (atomic_exchange(&windows.wanted, false))
        windows.trigger();
}

void culet_windows_count(void)
{
    atomic_fetch_add(&windows.hook_time, HOOK_TIME);
    if (atomic_load(&windows.wanted) && culet_clock(CLOCK_MONOTONIC) >= closing_time())
        close_window();
}

/* ---- the jobs ---- */

/* After a wait the job decides whether a window would be open by now. If so, a part of it is over, and any part is
 * equally probable. */
static void resume(void)
{
    if (culet_windows_random(&windows.random) < culet_windows_share())
        open_window(culet_clock(CLOCK_MONOTONIC),
                    (uint64_t)(culet_windows_random(&windows.random) * (double)WINDOW_TIME));
}

bool culet_windows_wanted(void)
{
    bool was_waiting = atomic_exchange(&windows.waiting, false);

    if (was_waiting)
        resume();
    else if (atomic_load(&windows.wanted) && culet_clock(CLOCK_MONOTONIC) >= closing_time())
        atomic_store(&windows.wanted, false); /* the thread is late */
    atomic_fetch_add(&windows.jobs, 1);
    if (was_waiting)
        culet_sleeper_wake(&windows.thread);
    return atomic_load(&windows.wanted);
}

void culet_windows_cost(uint64_t nanoseconds)
{
    atomic_fetch_add(&windows.cost, nanoseconds);
}

struct culet_windows_span culet_windows_begin(void)
{
    return (struct culet_windows_span){culet_clock(CLOCK_MONOTONIC), culet_clock(CLOCK_THREAD_CPUTIME_ID)};
}

/* On a busy machine the span may have begun in the window before. */
void culet_windows_end(struct culet_windows_span began)
{
    if (atomic_load(&windows.wanted)) {
        uint64_t opened_at = atomic_load(&windows.opened_at);
        atomic_fetch_add(&windows.span_time,
                         culet_clock(CLOCK_MONOTONIC) - (began.time > opened_at ? began.time : opened_at));
    }
    culet_windows_cost(culet_clock(CLOCK_THREAD_CPUTIME_ID) - began.thread_time);
}

/* ---- the thread ---- */

static void sleep_until_closed(void)
{
    uint64_t time;

    while (atomic_load(&windows.wanted)) {
        uint32_t wakeups = atomic_load(&windows.thread.wakeups);
        uint64_t closes = closing_time();
        if ((time = culet_clock(CLOCK_MONOTONIC)) >= closes || atomic_load(&windows.thread.ended))
            close_window();
        else
            culet_sleeper_sleep(&windows.thread, wakeups, closes - time);
    }
}

/* No job has run for a whole window: Ruby is idle or in C code, and windows would open and close in vain. The trigger is
 * repeated, because it goes to the Ruby thread that ran last, and that thread may be blocked. */
static void wait_for_ruby(uint32_t jobs)
{
    uint64_t time = FIRST_WAIT;

    atomic_store(&windows.waiting, true);
    while (atomic_load(&windows.waiting) && !atomic_load(&windows.thread.ended)) {
        uint32_t wakeups = atomic_load(&windows.thread.wakeups);
        if (atomic_load(&windows.jobs) != jobs)
            break; /* one ran before `waiting` was set */
        culet_sleeper_sleep(&windows.thread, wakeups, time);
        if (atomic_load(&windows.waiting))
            windows.trigger();
        time = time * 2 < LAST_WAIT ? time * 2 : LAST_WAIT;
    }
    if (!atomic_exchange(&windows.waiting, false))
        sleep_until_closed();
}

/* Where windows are expensive, they are rarer. */
static double update_gap(double *processor)
{
    double before = *processor;
    double cost = (double)(atomic_exchange(&windows.cost, 0) + atomic_load(&windows.hook_time));

    *processor = (double)culet_clock(CLOCK_THREAD_CPUTIME_ID);
    windows.opened += windows.opened < EARLY;
    windows.mean_cost += (cost + *processor - before - windows.mean_cost) / fmin(windows.opened, AVERAGED);
    if (windows.opened <= FIRST)
        return (double)GAP_TIME * windows.opened / FIRST;
    return fmax(windows.mean_cost / (windows.opened < EARLY ? EARLY_SHARE : COST_SHARE), GAP_TIME);
}

static void run_window(void)
{
    uint32_t jobs = atomic_load(&windows.jobs);

    open_window(culet_clock(CLOCK_MONOTONIC), WINDOW_TIME);
    windows.trigger();
    sleep_until_closed();
    if (atomic_load(&windows.jobs) == jobs)
        wait_for_ruby(jobs);
}

static void *run_thread(void *unused)
{
    uint64_t random = culet_windows_seed();
    double processor = (double)culet_clock(CLOCK_THREAD_CPUTIME_ID);

    (void)unused;
    prctl(PR_SET_NAME, "culet-profile", 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0); /* the default of 50 us is a fifth of a window */
    while (!atomic_load(&windows.thread.ended)) {
        uint32_t wakeups = atomic_load(&windows.thread.wakeups);
        double gap = update_gap(&processor);
        atomic_store(&windows.share, WINDOW_TIME / (WINDOW_TIME + gap));
        if (!atomic_load(&windows.thread.ended))
            culet_sleeper_sleep(&windows.thread, wakeups, (uint64_t)(-log(culet_windows_random(&random)) * gap));
        if (!atomic_load(&windows.thread.ended))
            run_window();
    }
    return NULL;
}

int culet_windows_start(void)
{
    if (!culet_sleeper_claim(&windows.thread))
        return 0;
    atomic_store(&windows.thread.ended, false);
    atomic_store(&windows.share, WINDOW_TIME / (double)(WINDOW_TIME + GAP_TIME / FIRST));
    windows.opened = 0;
    windows.random = culet_windows_seed();
    return culet_sleeper_start(&windows.thread, run_thread, NULL);
}

void culet_windows_stop(void)
{
    if (culet_sleeper_end(&windows.thread))
        atomic_store(&windows.wanted, false);
}

/* ---- fork ---- */

/* A child has none of its parent's threads. Its first job starts its own. */
static void reset_in_child(void)
{
    if (!culet_sleeper_forget(&windows.thread))
        return;
    atomic_store(&windows.wanted, false);
    atomic_store(&windows.waiting, false);
    windows.trigger();
}

int culet_windows_prepare(culet_windows_trigger *trigger)
{
    windows.trigger = trigger;
    return pthread_atfork(NULL, NULL, reset_in_child);
}
