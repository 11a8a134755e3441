#include "samples.h"

#include "clock.h"
#include "futex.h"
#include "modules.h"
#include "random.h"
#include "tls.h"
#include "unwind.h"
#include "writer.h"

#include <unistd.h>

static CULET_TLS bool inside;
static CULET_TLS bool forking; /* the thread holds the lock, from prepare on */
static CULET_TLS uint32_t label;

static struct culet_futex lock;
static struct culet_tables tables;  /* [lock] */
static struct culet_futex starting; /* taken before `lock`, and not by a fork */
static struct culet_profile_host host;
static _Atomic uint64_t skipped[CULET_SKIPS]; /* counted without the lock */
static _Atomic bool on;
static _Atomic(culet_profile_frames *) frames;
static double notify_bytes;          /* [lock] */
static void (*notify_reached)(void); /* [lock] NULL: no listener */

/* A signal handler that allocates must not wait for the lock that its thread holds: it is inside. */
static bool enter(void)
{
    bool was_inside = inside;

    inside = true;
    if (!forking)
        culet_futex_lock(&lock);
    return was_inside;
}

static void leave(bool was_inside)
{
    if (!forking)
        culet_futex_unlock(&lock);
    inside = was_inside;
}

bool culet_profile_inside(void)
{
    return inside;
}

/* ---- samples ---- */

void culet_profile_skip(enum culet_skip reason)
{
    atomic_fetch_add_explicit(&skipped[reason], 1, memory_order_relaxed);
}

/* The sums stay finite whatever the caller has divided by. */
static double checked_weight(double weight)
{
    return weight >= 1 ? (weight < 0x1p62 ? weight : 0x1p62) : 1;
}

static uint32_t add(enum culet_profile_kind kind, const void *block, size_t size, double weight, uint32_t type,
                    const uint64_t *words, size_t count)
{
    struct culet_site key = {.label = label, .type = type, .kind = kind};
    struct culet_sample sample = {.size = size,
                                  .weight = checked_weight(weight),
                                  .block = block,
                                  .born_ns = culet_profile_clock(CLOCK_MONOTONIC_COARSE)};
    uint32_t number = 0;
    void (*reached)(void) = NULL;
    bool was_inside = enter();

    if (tables.sample) {
        key.stack = culet_stacks_intern(&tables.stacks, words, count);
        number = culet_tables_add(&tables, &key, &sample);
        culet_tables_set_resident(&tables, host.resident ? host.resident() : (uint64_t)tables.live_bytes);
        if (notify_reached && tables.live_bytes > notify_bytes) {
            reached = notify_reached;
            notify_reached = NULL;
        }
    }
    leave(was_inside);
    if (reached)
        reached();
    return number;
}

static void remove_sample(uint32_t number)
{
    bool was_inside = enter();

    culet_tables_remove(&tables, number);
    leave(was_inside);
}

static void set_label(uint32_t number)
{
    label = number;
}

static void next_epoch(void)
{
    bool was_inside = enter();

    culet_tables_next_epoch(&tables, culet_profile_clock(CLOCK_MONOTONIC_COARSE));
    leave(was_inside);
}

/* With the lock. */
static struct culet_moment now(void)
{
    return (struct culet_moment){culet_profile_clock(CLOCK_REALTIME), culet_profile_clock(CLOCK_MONOTONIC_COARSE),
                                 host.resident ? host.resident() : 0};
}

static void booted(void)
{
    bool was_inside = enter();

    struct culet_moment moment = now();
    culet_tables_set_base(&tables, &moment);
    leave(was_inside);
}

/* Of a process, and of the moment. */
static uint32_t first_id(void)
{
    return (uint32_t)culet_index_mix(culet_profile_clock(CLOCK_REALTIME) ^ (uint64_t)getpid() << 40);
}

/* ---- start and stop ---- */

/* Begins an empty profile. False: no memory; the former profile is as it was. */
static bool restart(void)
{
    struct culet_tables fresh;

    if (!culet_tables_create(&fresh))
        return false;
    fresh.next_id = first_id();
    culet_modules_refresh();
    bool was_inside = enter();
    struct culet_moment moment = now();
    fresh.started_ns = fresh.base_ns = moment.real_ns;
    fresh.phase_ns = moment.ns;
    fresh.base_resident = moment.resident;
    culet_tables_restart(&tables, &fresh);
    leave(was_inside);
    for (unsigned i = 0; i < CULET_SKIPS; i++)
        atomic_store_explicit(&skipped[i], 0, memory_order_relaxed);
    culet_tables_destroy(&fresh);
    return true;
}

static bool start_locked(uint64_t sample_bytes)
{
    if (!atomic_load(&on) && !restart())
        return false;
    culet_profile_set_mean(sample_bytes);
    bool was_inside = enter();
    tables.sample_bytes = culet_profile_mean();
    leave(was_inside);
    atomic_store(&on, true);
    if (host.started)
        host.started();
    return true;
}

static bool start(uint64_t sample_bytes)
{
    culet_futex_lock(&starting);
    bool done = start_locked(sample_bytes);
    culet_futex_unlock(&starting);
    return done;
}

static void stop(void)
{
    culet_futex_lock(&starting);
    if (atomic_exchange(&on, false) && host.stopped)
        host.stopped();
    culet_futex_unlock(&starting);
}

static bool running(void)
{
    return atomic_load_explicit(&on, memory_order_relaxed);
}

void culet_profile_set_host(const struct culet_profile_host *functions)
{
    host = *functions;
}

/* ---- stacks ---- */

static void set_frames(culet_profile_frames *function)
{
    atomic_store(&frames, function);
}

static size_t native_words(const uintptr_t *pcs, size_t count, bool complete, uint64_t *words, size_t max)
{
    size_t taken = count < max ? count : max;

    for (size_t i = 0; i < taken; i++)
        words[i] = (uint64_t)pcs[i];
    if ((complete && taken == count) || !max)
        return taken;
    taken = taken < max ? taken + 1 : max;
    words[taken - 1] = culet_word_mark(CULET_MARK_TRUNCATED);
    return taken;
}

/* Not inlined, so that the innermost address is one in here, which is left out. */
static __attribute__((noinline)) size_t capture(uint64_t *words, size_t max)
{
    uintptr_t pcs[CULET_PROFILE_FRAMES + 1];
    bool complete, was_inside = inside;

    inside = true;
    culet_profile_frames *function = atomic_load(&frames);
    size_t count = culet_unwind(pcs, CULET_PROFILE_FRAMES + 1, &complete);
    count -= count > 0;
    count = function ? function(pcs + 1, count, words, max) : native_words(pcs + 1, count, complete, words, max);
    inside = was_inside;
    return count;
}

/* ---- fork ---- */

void culet_profile_prepare(void)
{
    culet_futex_lock(&lock);
    forking = true;
}

void culet_profile_parent(void)
{
    tables.forked = true;
    forking = false;
    culet_futex_unlock(&lock);
}

/* A thread that was about to start or stop the profile is not in the child. */
void culet_profile_child(void)
{
    struct culet_moment moment = now();
    culet_tables_forked(&tables, &moment, first_id());
    notify_reached = NULL;
    forking = false;
    culet_futex_reset(&lock);
    culet_futex_reset(&starting);
}

/* ---- reading ---- */

bool culet_profile_copy(struct culet_copy *copy)
{
    for (;;) {
        bool was_inside = enter();
        struct culet_tables counts = tables;
        leave(was_inside);
        if (!counts.sample || !culet_copy_map(copy, &counts))
            return false;
        was_inside = enter();
        bool filled = culet_copy_fill(copy, &tables);
        copy->tables.taken_resident = now().resident;
        leave(was_inside);
        for (unsigned i = 0; filled && i < CULET_SKIPS; i++)
            copy->tables.skipped[i] = atomic_load_explicit(&skipped[i], memory_order_relaxed);
        if (filled)
            return true;
        culet_copy_unmap(copy);
    }
}

static bool top_sites(struct culet_profile_top *top)
{
    bool was_inside = enter(), exists = tables.sample != NULL;

    if (exists)
        culet_tables_top(&tables, top);
    leave(was_inside);
    return exists;
}

static bool list_samples(struct culet_profile_samples *samples)
{
    bool was_inside = enter(), exists = tables.sample != NULL;

    if (exists)
        culet_tables_samples(&tables, samples);
    leave(was_inside);
    return exists;
}

static void notify(double bytes, void (*reached)(void))
{
    bool was_inside = enter();

    notify_bytes = bytes;
    notify_reached = reached;
    leave(was_inside);
}

static bool write_profile(culet_profile_output *output, void *data, uint64_t *lines)
{
    struct culet_copy copy;

    if (!culet_profile_copy(&copy))
        return false;
    bool done = culet_profile_write(&copy.tables, output, data, lines);
    culet_copy_unmap(&copy);
    return done;
}

#ifdef CULET_PROFILE_SAMPLES_MALLOC
#define SAMPLES_MALLOC true
#define EXPORTED __attribute__((visibility("default")))
#else
#define SAMPLES_MALLOC false
#define EXPORTED
#endif

EXPORTED const struct culet_profile_api culet_profile_api = {
    .version = CULET_PROFILE_VERSION,
    .samples_malloc = SAMPLES_MALLOC,
    .start = start,
    .stop = stop,
    .running = running,
    .sample_bytes = culet_profile_mean,
    .set_frames = set_frames,
    .set_label = set_label,
    .next_epoch = next_epoch,
    .booted = booted,
    .capture = capture,
    .function = culet_unwind_function,
    .add = add,
    .remove = remove_sample,
    .write = write_profile,
    .top = top_sites,
    .samples = list_samples,
    .notify = notify,
};
