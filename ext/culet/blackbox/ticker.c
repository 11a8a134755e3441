/*
 * A ledger every second. While memory grows fast, further ones in between, so that the last before a kill is near: the
 * next one comes after an eighth of the time in which the group would reach its limit.
 *
 * The profile's largest sites are written every second, or at intervals of which writing takes a thousandth. While its
 * estimate exceeds what it was by more than a part in 128, sooner, from a budget.
 */
#include "blackbox/ticker.h"

#include <linux/futex.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "blackbox/box.h"
#include "blackbox/events.h"
#include "blackbox/ledger.h"
#include "common/filter.h"
#include "common/thread.h"
#include "profile/top.h"

#define SECOND UINT64_C(1000000000)
#define LEAST_WAIT UINT64_C(20000000)
#define PARTS 8                /* ledgers until the limit would be reached */
#define SLICE UINT64_C(100000) /* nanoseconds; the least that the kernel takes */
#define QUIET_BYTES 65536      /* growth between two ledgers that is none */

#define PROFILE_SHARE 1000                 /* writing the sites may take this part of the time */
#define PROFILE_GROWTH (1 + 1.0 / 128)     /* of the estimate, which is worth a new record */
#define PROFILE_DECAY 0.99                 /* of the largest estimate, each second */
#define PROFILE_BUDGET UINT64_C(100000000) /* for records out of turn: nanoseconds */
#define PROFILE_REFILL 2000                /* the budget grows by this part of the time */
#define PROFILE_SMALL (256 * 1024)         /* bytes; less growth is not worth a record */

enum { NO_THREAD, STARTING, RUNNING };

static struct {
    pthread_t thread;
    _Atomic int state;
    _Atomic bool ended;
    _Atomic uint32_t wakeups; /* futex */
    _Atomic bool grown;       /* the profile's estimate has reached the largest so far */
    _Atomic uint64_t ledgers, profiles, processor_time;
} ticker;

/* Of the thread. */
static struct {
    uint64_t seconds, fast;      /* numbers of the last records */
    uint64_t second_at, fast_at; /* when they were written: CLOCK_MONOTONIC */
    uint64_t used;               /* of the group, or resident, in the last one */
    uint64_t limit;
    uint64_t profile, profile_due; /* number of the last record; when the next is due */
    uint64_t budget, budget_at;
    double largest;  /* estimate of the profile, decayed */
    double estimate; /* the last one */
    struct culet_buffer buffer;
} own;

static uint64_t read_clock(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

static uint64_t monotonic(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* ---- the profile ---- */

static void wake(void)
{
    atomic_fetch_add(&ticker.wakeups, 1);
    (void)syscall(SYS_futex, &ticker.wakeups, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Inside malloc. */
static void on_growth(void)
{
    atomic_store(&ticker.grown, true);
    wake();
}

/* Asks to be woken when the estimate is worth a record out of turn. */
static void watch_growth(void)
{
    double most = own.largest * PROFILE_GROWTH;

    atomic_store(&ticker.grown, false);
    culet_profile_top_notify(most > own.largest + PROFILE_SMALL ? most : own.largest + PROFILE_SMALL, on_growth);
}

static void write_profile(uint64_t now)
{
    uint64_t started = read_clock(CLOCK_THREAD_CPUTIME_ID), cost;
    double estimate = culet_profile_top(&own.buffer, culet_box_room(CULET_BOX_PROFILE));

    if (estimate >= 0) {
        own.profile++;
        culet_box_write(CULET_BOX_PROFILE, culet_box_slot(CULET_BOX_PROFILE, own.profile), own.profile, culet_box_now(),
                        own.buffer.bytes, own.buffer.length);
        own.estimate = estimate;
        own.largest = estimate > own.largest ? estimate : own.largest;
        atomic_fetch_add(&ticker.profiles, 1);
    }
    cost = read_clock(CLOCK_THREAD_CPUTIME_ID) - started;
    own.budget = own.budget > cost ? own.budget - cost : 0;
    own.profile_due = now + (cost * PROFILE_SHARE > SECOND ? cost * PROFILE_SHARE : SECOND);
    watch_growth();
}

static void refill(uint64_t now)
{
    own.budget += (now - own.budget_at) / PROFILE_REFILL;
    own.budget = own.budget < PROFILE_BUDGET ? own.budget : PROFILE_BUDGET;
    own.budget_at = now;
}

/* Returns when the next one is due. */
static uint64_t write_profile_if_due(uint64_t now)
{
    refill(now);
    if (!culet_profile_top_exists()) {
        own.estimate = 0;
        return now + SECOND;
    }
    if (now >= own.profile_due || (atomic_load(&ticker.grown) && own.budget > 0))
        write_profile(now);
    else if (own.largest == 0)
        watch_growth();
    return own.profile_due;
}

/* ---- ledgers ---- */

static void add_counts(struct culet_box_ledger *ledger)
{
    culet_events_count(&ledger->running, &ledger->events);
    ledger->profile_bytes = (uint64_t)own.estimate;
    ledger->processor_time = read_clock(CLOCK_THREAD_CPUTIME_ID);
    atomic_store(&ticker.processor_time, ledger->processor_time);
    atomic_fetch_add(&ticker.ledgers, 1);
}

static void write_second(struct culet_box_ledger *ledger)
{
    culet_ledger_read(ledger);
    add_counts(ledger);
    own.limit = ledger->group_limit;
    own.seconds++;
    own.largest *= PROFILE_DECAY;
    culet_box_write(CULET_BOX_SECONDS, culet_box_slot(CULET_BOX_SECONDS, own.seconds), own.seconds, culet_box_now(),
                    ledger, sizeof(*ledger));
}

static void write_fast(struct culet_box_ledger *ledger)
{
    culet_ledger_read_fast(ledger);
    add_counts(ledger);
    own.fast++;
    culet_box_write(CULET_BOX_FAST, culet_box_slot(CULET_BOX_FAST, own.fast), own.fast, culet_box_now(), ledger,
                    sizeof(*ledger));
}

/* How long the group needs for a part of the way to its limit, at the rate of the last interval. */
static uint64_t next_wait(const struct culet_box_ledger *ledger, uint64_t interval)
{
    uint64_t used = ledger->group_used != CULET_BOX_UNKNOWN ? ledger->group_used : ledger->resident;
    uint64_t before = own.used;
    double rate, wait;

    own.used = used;
    if (own.limit == CULET_BOX_UNKNOWN || used == CULET_BOX_UNKNOWN || used < before + QUIET_BYTES || before == 0)
        return SECOND;
    if (used >= own.limit)
        return LEAST_WAIT;
    rate = (double)(used - before) / (double)(interval > 0 ? interval : 1);
    wait = (double)(own.limit - used) / rate / PARTS;
    return wait < (double)LEAST_WAIT ? LEAST_WAIT : wait > (double)SECOND ? SECOND : (uint64_t)wait;
}

/* Returns when the next ledger is due. */
static uint64_t write_ledger(uint64_t now)
{
    struct culet_box_ledger ledger;
    uint64_t interval = now - own.fast_at, wait;

    if (now >= own.second_at + SECOND) {
        write_second(&ledger);
        own.second_at = now;
    } else {
        write_fast(&ledger);
    }
    own.fast_at = now;
    wait = next_wait(&ledger, interval);
    return now + wait < own.second_at + SECOND ? now + wait : own.second_at + SECOND;
}

/* ---- the thread ---- */

static void sleep_until(uint64_t due, uint64_t now, uint32_t wakeups_seen)
{
    uint64_t wait = due > now ? due - now : 0;
    struct timespec time = {(time_t)(wait / SECOND), (long)(wait % SECOND)};

    /* the caller checks everything again, whatever ended the wait */
    (void)syscall(SYS_futex, &ticker.wakeups, FUTEX_WAIT_PRIVATE, wakeups_seen, &time, NULL, 0);
}

/* Not by Ruby's warn: this is no Ruby thread. Returns whether the file is there. */
static bool has_file(void)
{
    if (culet_box_mapped() && !culet_box_lost())
        return true;
    if (culet_box_lost())
        dprintf(STDERR_FILENO,
                "culet: the file of the black box was truncated, or its disk failed; the program runs on "
                "without a black box\n");
    culet_box_unmap();
    return false;
}

/* struct sched_attr of sched_setattr(2), its first version. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/*
 * A thread that asks for short slices runs sooner after it is woken, on Linux 6.12 and later: on a busy machine, other
 * threads would allocate for tens of milliseconds before. It gets no larger share. Other kernels ignore the slice.
 */
static void ask_for_short_slices(void)
{
    struct attributes attributes = {.size = sizeof(attributes)};

    if (culet_filtered() || syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0 ||
        attributes.policy != SCHED_OTHER)
        return;
    attributes.runtime = SLICE;
    attributes.flags = 0;
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static void *run_thread(void *unused)
{
    uint64_t ledger_due = 0, profile_due = 0, now;

    (void)unused;
    prctl(PR_SET_NAME, "culet-blackbox", 0, 0, 0);
    ask_for_short_slices();
    while (!atomic_load(&ticker.ended) && has_file()) {
        uint32_t wakeups = atomic_load(&ticker.wakeups);
        now = monotonic();
        if (now >= ledger_due || (atomic_load(&ticker.grown) && now >= own.fast_at + LEAST_WAIT / 4))
            ledger_due = write_ledger(now);
        profile_due = write_profile_if_due(now);
        now = monotonic();
        sleep_until(ledger_due < profile_due ? ledger_due : profile_due, now, wakeups);
    }
    return NULL;
}

/* The thread blocks all signals but those of its own accesses to the box, which answers SIGBUS. */
int culet_ticker_start(void)
{
    sigset_t blocked;
    int error, none = NO_THREAD;

    if (!atomic_compare_exchange_strong(&ticker.state, &none, STARTING))
        return 0;
    atomic_store(&ticker.ended, false);
    own.budget = PROFILE_BUDGET;
    own.budget_at = monotonic();
    sigfillset(&blocked);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGSEGV);
    error = culet_thread_start(&ticker.thread, run_thread, &blocked);
    atomic_store(&ticker.state, error == 0 ? RUNNING : NO_THREAD);
    return error;
}

void culet_ticker_stop(void)
{
    atomic_store(&ticker.ended, true);
    if (atomic_exchange(&ticker.state, NO_THREAD) != RUNNING)
        return;
    wake();
    pthread_join(ticker.thread, NULL);
    culet_profile_top_notify(0, NULL);
}

void culet_ticker_reset(void)
{
    atomic_store(&ticker.state, NO_THREAD);
    atomic_store(&ticker.grown, false);
    own.seconds = own.fast = own.profile = 0;
    own.second_at = own.fast_at = own.profile_due = 0;
    own.used = 0;
    own.largest = own.estimate = 0;
    memset(&own.buffer, 0, sizeof(own.buffer)); /* the parent's thread may have been changing it */
    atomic_store(&ticker.ledgers, 0);
    atomic_store(&ticker.profiles, 0);
    atomic_store(&ticker.processor_time, 0);
}

struct culet_ticker_stats culet_ticker_stats(void)
{
    return (struct culet_ticker_stats){atomic_load(&ticker.ledgers), atomic_load(&ticker.profiles),
                                       atomic_load(&ticker.processor_time)};
}
