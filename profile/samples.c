#include "samples.h"

#include "futex.h"
#include "memory.h"
#include "random.h"
#include "unwind.h"

#include <string.h>
#include <time.h>

#define TLS static _Thread_local __attribute__((tls_model("initial-exec")))

TLS bool inside;
TLS uint32_t label;

static struct culet_futex lock;
static struct culet_samples all; /* [lock] */
static struct culet_profile_host host;
static _Atomic bool on;
static _Atomic(culet_profile_frames *) frames;

/* ---- tables ---- */

static void destroy(struct culet_samples *s)
{
    culet_stacks_destroy(&s->stacks);
    culet_profile_unmap(s->site, CULET_SITES * sizeof *s->site);
    culet_profile_unmap(s->site_index, CULET_SITE_INDEX * sizeof *s->site_index);
    culet_profile_unmap(s->sample, CULET_SAMPLES * sizeof *s->sample);
    *s = (struct culet_samples){0};
}

static bool create(struct culet_samples *s)
{
    *s = (struct culet_samples){.sites = 1, .samples = 1};
    s->site = culet_profile_map(CULET_SITES * sizeof *s->site);
    s->site_index = culet_profile_map(CULET_SITE_INDEX * sizeof *s->site_index);
    s->sample = culet_profile_map(CULET_SAMPLES * sizeof *s->sample);
    if (culet_stacks_create(&s->stacks) && s->site && s->site_index && s->sample)
        return true;
    destroy(s);
    return false;
}

static uint64_t nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- sums ---- */

static void sum(struct culet_profile_sums *sums, const struct culet_sample *sample)
{
    double size = (double)sample->size;

    sums->samples++;
    sums->blocks += sample->weight;
    sums->bytes += sample->weight * size;
    sums->variance += sample->weight * (sample->weight - 1) * size * size;
}

/* The last one leaves no rounding errors behind. */
static void subtract(struct culet_profile_sums *sums, const struct culet_sample *sample)
{
    double size = (double)sample->size;

    if (--sums->samples == 0) {
        *sums = (struct culet_profile_sums){0};
        return;
    }
    sums->blocks -= sample->weight;
    sums->bytes -= sample->weight * size;
    sums->variance -= sample->weight * (sample->weight - 1) * size * size;
}

/* Before the live sums of a site change. */
static void save_peak(struct culet_site *site)
{
    if (site->peak_number != all.peak_number) {
        site->peak_number = all.peak_number;
        site->peak = site->live;
    }
}

static void look_for_peak(void)
{
    all.resident = host.resident ? host.resident() : (uint64_t)all.live_bytes;
    if (all.resident > all.peak_resident) {
        all.peak_resident = all.resident;
        all.peak_number++;
    }
}

/* ---- sites ---- */

static uint32_t hash(const struct culet_site *key)
{
    uint64_t h = ((uint64_t)key->stack << 32 | key->label) ^ ((uint64_t)key->type << 20 | key->kind << 8);

    h *= UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 40) & (CULET_SITE_INDEX - 1);
}

/* The site of that key; 0 if there is no room. */
static uint32_t find_site(const struct culet_site *key)
{
    uint32_t at = hash(key), number;

    for (; (number = all.site_index[at]); at = (at + 1) & (CULET_SITE_INDEX - 1)) {
        const struct culet_site *site = &all.site[number];
        if (site->stack == key->stack && site->label == key->label && site->type == key->type &&
            site->kind == key->kind)
            return number;
    }
    if (all.sites == CULET_SITES)
        return 0;
    all.site[all.sites] = *key;
    /* Nothing of it was live at the peak. */
    all.site[all.sites].peak_number = all.peak_number;
    return all.site_index[at] = all.sites++;
}

/* ---- samples ---- */

/* A free sample; 0 if there is no room. */
static uint32_t take_sample(void)
{
    uint32_t number = all.free;

    if (number) {
        all.free = (uint32_t)all.sample[number].size;
        return number;
    }
    return all.samples < CULET_SAMPLES ? all.samples++ : 0;
}

static uint32_t add_locked(const struct culet_site *key, size_t size, double weight)
{
    uint32_t site = find_site(key), number = site ? take_sample() : 0;

    if (!number) {
        all.lost++;
        return 0;
    }
    all.sample[number] = (struct culet_sample){
        .site = site, .epoch = all.epoch, .generation = all.generation, .size = size, .weight = weight};
    save_peak(&all.site[site]);
    sum(&all.site[site].allocated, &all.sample[number]);
    sum(&all.site[site].live, &all.sample[number]);
    all.live_bytes += weight * (double)size;
    look_for_peak();
    return number;
}

static uint32_t add(enum culet_profile_kind kind, size_t size, double weight, uint32_t type, const uint64_t *words,
                    size_t count)
{
    struct culet_site key = {.label = label, .type = type, .kind = kind};
    uint32_t number = 0;

    culet_futex_lock(&lock);
    if (all.sample) {
        key.stack = culet_stacks_intern(&all.stacks, words, count);
        number = add_locked(&key, size, weight);
    }
    culet_futex_unlock(&lock);
    return number;
}

static void remove_sample(uint32_t number)
{
    culet_futex_lock(&lock);
    /* A sample of a former profile: the tables have been made anew. */
    if (number < all.samples && number && all.sample[number].site) {
        struct culet_sample *sample = &all.sample[number];
        struct culet_site *site = &all.site[sample->site];
        save_peak(site);
        subtract(&site->live, sample);
        all.live_bytes -= sample->weight * (double)sample->size;
        sample->site = 0;
        sample->size = all.free;
        all.free = number;
    }
    culet_futex_unlock(&lock);
}

/* ---- control ---- */

static bool start(uint64_t sample_bytes)
{
    bool was_on = atomic_load(&on), done = true;

    if (!was_on) {
        struct culet_samples fresh;
        culet_unwind_refresh();
        done = create(&fresh);
        if (!done)
            return false;
        culet_futex_lock(&lock);
        /* Samples of the former profile are still in the heap: their numbers must not be given out again. */
        fresh.samples = all.samples ? all.samples : 1;
        fresh.generation = all.generation;
        fresh.started_ns = nanoseconds();
        destroy(&all);
        all = fresh;
        culet_futex_unlock(&lock);
    }
    culet_profile_set_mean(sample_bytes);
    culet_futex_lock(&lock);
    all.sample_bytes = culet_profile_mean();
    culet_futex_unlock(&lock);
    atomic_store(&on, true);
    if (host.started)
        host.started();
    return done;
}

static void stop(void)
{
    if (atomic_exchange(&on, false) && host.stopped)
        host.stopped();
}

static bool running(void)
{
    return atomic_load_explicit(&on, memory_order_relaxed);
}

void culet_profile_set_host(const struct culet_profile_host *functions)
{
    host = *functions;
}

static void set_frames(culet_profile_frames *function)
{
    atomic_store(&frames, function);
}

static void set_label(uint32_t number)
{
    label = number;
}

static void next_epoch(void)
{
    culet_futex_lock(&lock);
    all.epoch++;
    culet_futex_unlock(&lock);
}

bool culet_profile_inside(void)
{
    return inside;
}

static size_t native_words(const uintptr_t *pcs, size_t count, uint64_t *words, size_t max)
{
    size_t taken = count < max ? count : max;

    for (size_t i = 0; i < taken; i++)
        words[i] = (uint64_t)pcs[i];
    return taken;
}

static size_t capture(uint64_t *words, size_t max)
{
    uintptr_t pcs[CULET_PROFILE_FRAMES];
    bool complete, was_inside = inside;

    inside = true;
    culet_profile_frames *function = atomic_load(&frames);
    size_t count = culet_unwind(pcs, CULET_PROFILE_FRAMES, &complete);
    count = (function ? function : native_words)(pcs, count, words, max);
    if (!complete && !function && count < max)
        words[count++] = culet_word_mark(CULET_MARK_TRUNCATED);
    inside = was_inside;
    return count;
}

/* ---- fork ---- */

void culet_profile_prepare(void)
{
    culet_futex_lock(&lock);
}

void culet_profile_parent(void)
{
    culet_futex_unlock(&lock);
}

void culet_profile_child(void)
{
    all.generation++;
    atomic_store(&lock.state, 0);
}

/* ---- reading ---- */

static void *duplicate(const void *from, size_t bytes)
{
    void *copy = culet_profile_map(bytes);

    return copy ? memcpy(copy, from, bytes) : NULL;
}

static bool copy_locked(struct culet_samples *copy)
{
    if (!all.sample)
        return false;
    *copy = all;
    copy->site_index = copy->stacks.index = NULL;
    copy->stacks.node = duplicate(all.stacks.node, all.stacks.count * sizeof *all.stacks.node);
    copy->site = duplicate(all.site, all.sites * sizeof *all.site);
    copy->sample = duplicate(all.sample, all.samples * sizeof *all.sample);
    return copy->stacks.node && copy->site && copy->sample;
}

bool culet_profile_copy(struct culet_samples *copy)
{
    *copy = (struct culet_samples){0};
    culet_futex_lock(&lock);
    bool done = copy_locked(copy);
    culet_futex_unlock(&lock);
    if (!done)
        culet_profile_release(copy);
    return done;
}

void culet_profile_release(struct culet_samples *copy)
{
    culet_profile_unmap(copy->stacks.node, copy->stacks.count * sizeof *copy->stacks.node);
    culet_profile_unmap(copy->site, copy->sites * sizeof *copy->site);
    culet_profile_unmap(copy->sample, copy->samples * sizeof *copy->sample);
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
    .capture = capture,
    .function = culet_unwind_function,
    .add = add,
    .remove = remove_sample,
    .write = culet_profile_write,
};
