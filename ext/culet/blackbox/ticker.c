/* A reading every second. While memory grows fast, further ones in between, so that the last before a kill is near: the
 * next one comes after an eighth of the time in which the group would reach its limit.
 *
 * The profile's largest sites are written every second, or at intervals of which writing takes a thousandth. While its
 * estimate exceeds what it was by more than a part in 128, sooner, from a budget. */
#include "blackbox/ticker.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "blackbox/box.h"
#include "blackbox/events.h"
#include "blackbox/holders.h"
#include "common/filter.h"
#include "common/sleeper.h"
#include "profile/active_profile.h"
#include "profile/top.h"
#include "reading/reading.h"

#define LEAST_WAIT UINT64_C(20000000)
#define PARTS 8                /* readings until the limit would be reached */
#define SLICE UINT64_C(100000) /* nanoseconds; the least that the kernel takes */
#define QUIET_BYTES 65536      /* growth between two readings that is none */

#define PROFILE_REST_PER_COST 1000         /* writing the sites may take this part of the time */
#define PROFILE_GROWTH (1 + 1.0 / 128)     /* of the estimate, which is worth a new record */
#define PROFILE_DECAY 0.99                 /* of the largest estimate, each second */
#define PROFILE_BUDGET UINT64_C(100000000) /* for records out of turn: nanoseconds */
#define PROFILE_REFILL 2000                /* the budget grows by this part of the time */
#define PROFILE_SMALL (256 * 1024)         /* bytes; less growth is not worth a record */

/* A reading takes a part of the time. Between two seconds that may be a larger one: the process is about to be killed. */
static const struct culet_pace each_second = {1000, UINT64_C(900000000)}, between_seconds = {50, 0};

static struct {
    struct culet_sleeper thread;
    _Atomic bool grown; /* the profile's estimate has reached the largest so far */
    _Atomic uint64_t readings, profiles, processor_time;
} ticker;

/* Of the thread. */
static struct {
    uint64_t seconds, fast;      /* numbers of the last records */
    uint64_t second_at, fast_at; /* when they were written: CLOCK_MONOTONIC */
    uint64_t used;               /* of the group, or resident, in the last one */
    uint64_t limit;
    uint64_t profile;                  /* number of the last record */
    struct culet_budget profiling;     /* of these records */
    uint64_t out_of_turn, refilled_at; /* what further ones may cost, in nanoseconds */
    double largest;                    /* estimate of the profile, decayed */
    double estimate;                   /* the last one */
    struct culet_buffer buffer;
    struct culet_reader reader;
} own;

/* ---- the profile ---- */

/* Inside malloc. */
static void on_growth(void)
{
    atomic_store(&ticker.grown, true);
    culet_sleeper_wake(&ticker.thread);
}

/* Asks to be woken when the estimate is worth a record out of turn. */
static void watch_growth(void)
{
    double most = own.largest * PROFILE_GROWTH;

    atomic_store(&ticker.grown, false);
    culet_active_profile->notify(most > own.largest + PROFILE_SMALL ? most : own.largest + PROFILE_SMALL, on_growth);
}

/* Returns when the next one is due, unless the estimate grows. */
static uint64_t profile_due(void)
{
    return culet_budget_due(&own.profiling, PROFILE_REST_PER_COST, CULET_SECOND);
}

/* began: the thread's processor time before it. */
static void write_profile(uint64_t began)
{
    double estimate = culet_profile_top(&own.buffer, culet_box_room(CULET_BOX_PROFILE));

    if (estimate >= 0) {
        own.profile++;
        culet_box_write(CULET_BOX_PROFILE, culet_box_slot(CULET_BOX_PROFILE, own.profile), own.profile,
                        culet_clock(CLOCK_REALTIME), own.buffer.bytes, own.buffer.length);
        own.estimate = estimate;
        own.largest = estimate > own.largest ? estimate : own.largest;
        atomic_fetch_add(&ticker.profiles, 1);
    }
    culet_budget_end(&own.profiling, began);
    own.out_of_turn -= own.out_of_turn > own.profiling.cost ? own.profiling.cost : own.out_of_turn;
    watch_growth();
}

static void refill(uint64_t now)
{
    own.out_of_turn += (now - own.refilled_at) / PROFILE_REFILL;
    own.out_of_turn = own.out_of_turn < PROFILE_BUDGET ? own.out_of_turn : PROFILE_BUDGET;
    own.refilled_at = now;
}

/* Returns when the next one is due. */
static uint64_t write_profile_if_due(uint64_t now)
{
    refill(now);
    if (!culet_profile_top_exists()) {
        own.estimate = 0;
        return now + CULET_SECOND;
    }
    if (now >= profile_due() || (atomic_load(&ticker.grown) && own.out_of_turn > 0))
        write_profile(culet_clock(CLOCK_THREAD_CPUTIME_ID));
    else if (own.largest == 0)
        watch_growth();
    return profile_due();
}

/* ---- readings ---- */

/* The part of a reading that costs next to nothing. */
static struct culet_reading read_rest(void)
{
    culet_reader_sizes(&own.reader);
    culet_reader_ruby(&own.reader);
    return own.reader.reading;
}

static void write_reading(enum culet_box_table table, uint64_t number, struct culet_reading *reading)
{
    culet_events_count(&reading->running, &reading->events);
    reading->profile_bytes = (uint64_t)own.estimate;
    reading->processor_time = culet_clock(CLOCK_THREAD_CPUTIME_ID);
    atomic_store(&ticker.processor_time, reading->processor_time);
    culet_box_write(table, culet_box_slot(table, number), number, culet_clock(CLOCK_REALTIME), reading,
                    sizeof(*reading));
    atomic_fetch_add(&ticker.readings, 1);
}

static void write_second(struct culet_reading *reading)
{
    culet_reader_rollup(&own.reader, each_second);
    culet_reader_malloc(&own.reader, each_second);
    culet_reader_group(&own.reader);
    culet_reader_group_used(&own.reader, each_second);
    *reading = read_rest();
    own.limit = reading->group_limit;
    own.largest *= PROFILE_DECAY;
    write_reading(CULET_BOX_SECONDS, ++own.seconds, reading);
}

static void write_fast(struct culet_reading *reading)
{
    culet_reader_malloc(&own.reader, between_seconds);
    culet_reader_group_used(&own.reader, between_seconds);
    *reading = read_rest();
    write_reading(CULET_BOX_FAST, ++own.fast, reading);
}

/* How long the group needs for a part of the way to its limit, at the rate of the last interval. */
static uint64_t next_wait(const struct culet_reading *reading, uint64_t interval)
{
    uint64_t of_group = culet_reading_used(reading), used = of_group != CULET_UNKNOWN ? of_group : reading->resident;
    uint64_t before = own.used;
    double rate, wait;

    own.used = used;
    if (own.limit == CULET_UNKNOWN || used == CULET_UNKNOWN || used < before + QUIET_BYTES || before == 0)
        return CULET_SECOND;
    if (used >= own.limit)
        return LEAST_WAIT;
    rate = (double)(used - before) / (double)(interval > 0 ? interval : 1);
    wait = (double)(own.limit - used) / rate / PARTS;
    return wait < (double)LEAST_WAIT ? LEAST_WAIT : wait > (double)CULET_SECOND ? CULET_SECOND : (uint64_t)wait;
}

/* Returns when the next reading is due. */
static uint64_t write_due_reading(uint64_t now)
{
    struct culet_reading reading;
    uint64_t interval = now - own.fast_at, wait;

    if (now >= own.second_at + CULET_SECOND) {
        write_second(&reading);
        own.second_at = now;
        culet_holders_check(&reading);
    } else {
        write_fast(&reading);
    }
    own.fast_at = now;
    wait = next_wait(&reading, interval);
    return now + wait < own.second_at + CULET_SECOND ? now + wait : own.second_at + CULET_SECOND;
}

/* ---- the thread ---- */

/* Does not use Ruby's warn, because this is not a Ruby thread. Returns whether the file exists. */
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

/* A thread that asks for short slices runs sooner after it is woken, on Linux 6.12 and later: on a busy machine, other
 * threads would allocate for tens of milliseconds before. It gets no larger share. Other kernels ignore the slice. */
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
    uint64_t reading_due = 0, profile_at, due, now;

    prctl(PR_SET_NAME, "culet-blackbox", 0, 0, 0);
    ask_for_short_slices();
    while (!atomic_load(&ticker.thread.ended) && has_file()) {
        uint32_t wakeups = atomic_load(&ticker.thread.wakeups);
        now = culet_clock(CLOCK_MONOTONIC);
        if (now >= reading_due || (atomic_load(&ticker.grown) && now >= own.fast_at + LEAST_WAIT / 4))
            reading_due = write_due_reading(now);
        profile_at = write_profile_if_due(now);
        now = culet_clock(CLOCK_MONOTONIC);
        due = reading_due < profile_at ? reading_due : profile_at;
        culet_sleeper_sleep(&ticker.thread, wakeups, due > now ? due - now : 0);
    }
    return NULL;
}

/* The thread blocks all signals but those of its own accesses to the box, which answers SIGBUS. */
int culet_ticker_start(const struct culet_group *group)
{
    sigset_t blocked;

    if (!culet_sleeper_claim(&ticker.thread))
        return 0;
    atomic_store(&ticker.thread.ended, false);
    own.reader.group = *group;
    culet_reader_reset(&own.reader);
    own.out_of_turn = PROFILE_BUDGET;
    own.refilled_at = culet_clock(CLOCK_MONOTONIC);
    sigfillset(&blocked);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGSEGV);
    return culet_sleeper_start(&ticker.thread, run_thread, &blocked);
}

void culet_ticker_stop(void)
{
    if (culet_sleeper_end(&ticker.thread))
        culet_active_profile->notify(0, NULL);
}

void culet_ticker_reset(void)
{
    (void)culet_sleeper_forget(&ticker.thread);
    atomic_store(&ticker.grown, false);
    own.seconds = own.fast = own.profile = 0;
    own.second_at = own.fast_at = 0;
    own.profiling = (struct culet_budget){0, 0};
    own.used = 0;
    own.largest = own.estimate = 0;
    memset(&own.buffer, 0, sizeof(own.buffer)); /* the parent's thread may have been changing it */
    atomic_store(&ticker.readings, 0);
    atomic_store(&ticker.profiles, 0);
    atomic_store(&ticker.processor_time, 0);
}

struct culet_ticker_stats culet_ticker_stats(void)
{
    return (struct culet_ticker_stats){atomic_load(&ticker.readings), atomic_load(&ticker.profiles),
                                       atomic_load(&ticker.processor_time)};
}
