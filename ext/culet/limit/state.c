#include "limit/state.h"

#include <unistd.h>

#include "common/release.h"
#include "reading/clock.h"
#include "reading/process.h"

struct culet_limit_state culet_limit_state = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct culet_limit_state *const state = &culet_limit_state;

int culet_limit_watched(void)
{
    return atomic_load(&state->pid) == getpid();
}

static uint64_t group_bytes(const struct culet_group *group, uint64_t exact_from)
{
    uint64_t charged = culet_kernel_file_number(&group->charged);

    if (charged == CULET_UNKNOWN || charged < exact_from)
        return charged;
    return culet_group_used(charged, culet_group_reclaimable(group));
}

static uint64_t space_bytes(void)
{
    struct culet_sizes sizes;

    (void)culet_read_sizes(CULET_OWN_PROCESS, &sizes);
    return sizes.space;
}

static uint64_t pss_bytes(const struct culet_usage *usage, uint64_t exact_from, int fresh)
{
    int near = state->cluster.total >= exact_from / 8 * 7;
    uint64_t used = culet_cluster_bytes(&state->cluster, fresh  ? CULET_CLUSTER_NOW
                                                         : near ? CULET_CLUSTER_NEAR
                                                                : CULET_CLUSTER_FAR);

    if (used != CULET_UNKNOWN)
        atomic_store(usage->reported, used);
    return used;
}

/* The bytes in use; exact if they are `exact_from` or more, else an upper bound that costs less. fresh: of this moment;
 * else a proportional set size may be as old as its costs allow. CULET_UNKNOWN: it cannot be read. */
static uint64_t read_usage(const struct culet_usage *usage, uint64_t exact_from, int fresh)
{
    switch (usage->kind) {
    case CULET_USAGE_GROUP:
        return group_bytes(&usage->group, exact_from);
    case CULET_USAGE_PSS:
        return pss_bytes(usage, exact_from, fresh);
    case CULET_USAGE_SPACE:
        return space_bytes();
    case CULET_USAGE_REPORTED:
        return atomic_load(usage->reported);
    }
    return CULET_UNKNOWN;
}

uint64_t culet_limit_read_used(unsigned percent, int fresh)
{
    uint64_t used;

    pthread_mutex_lock(&state->lock);
    used = read_usage(&state->settings.usage, culet_limit_part(state->settings.limit, percent), fresh);
    pthread_mutex_unlock(&state->lock);
    atomic_fetch_add(&state->readings, 1);
    if (used != CULET_UNKNOWN)
        atomic_store(&state->used, used);
    return used;
}

uint64_t culet_limit_used(void)
{
    return culet_limit_watched() ? culet_limit_read_used(0, 1) : CULET_UNKNOWN;
}

int culet_limit_full(uint64_t bytes)
{
    uint64_t near = culet_limit_part(state->settings.limit, CULET_LIMIT_NEAR), used;

    if (atomic_load(&state->pid) == 0 || atomic_load(&state->used) < near)
        return 0;
    used = culet_limit_read_used(CULET_LIMIT_ALARM, 1);
    return used != CULET_UNKNOWN && used >= bytes;
}

uint64_t culet_limit_freed(uint64_t anonymous)
{
    uint64_t present = culet_anonymous_bytes();

    return anonymous != CULET_UNKNOWN && present != CULET_UNKNOWN && present < anonymous ? anonymous - present : 0;
}

void culet_limit_trim(struct culet_backoff *backoff, uint64_t limit)
{
    double began = culet_clock_seconds(CLOCK_MONOTONIC), ended;
    uint64_t before = culet_anonymous_bytes(), freed;

    culet_release_memory();
    freed = culet_limit_freed(before);
    ended = culet_clock_seconds(CLOCK_MONOTONIC);
    atomic_fetch_add(&state->trims, 1);
    atomic_fetch_add(&state->trimmed_bytes, freed);
    culet_backoff_note(backoff, ended, (ended - began) * CULET_LIMIT_TRIM_REST, freed, culet_limit_read_used(0, 1),
                       limit);
}

int culet_limit_list(const pid_t *workers, unsigned count, unsigned forks)
{
    int error;

    pthread_mutex_lock(&state->lock);
    error = culet_cluster_list(&state->cluster, workers, count, forks);
    pthread_mutex_unlock(&state->lock);
    return error;
}
