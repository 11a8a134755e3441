/* limit/state.h - the state of a watched limit, shared by the ticker and Ruby threads: settings, use, and the effect of
 * steps.
 *
 *   used < alarm: no step, unless the next collection would come too late
 *   alarm <= used < critical: the ticker trims
 *   critical <= used: collections */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "limit/backoff.h"
#include "limit/cluster.h"
#include "reading/group.h"

/* Shares of the limit, in percent. Below 85 % a program must not lose throughput. */
#define CULET_LIMIT_ALARM 85
#define CULET_LIMIT_CRITICAL 93

/* From this percentage of the limit on, each query reads the usage. */
#define CULET_LIMIT_NEAR 75

/* Pauses as multiples of the duration of a step: a trim may take a tenth of the time, a forced collection a fifth, so
 * that a program that cannot be kept below its limit still makes progress. */
#define CULET_LIMIT_TRIM_REST 10
#define CULET_LIMIT_COLLECTION_REST 5
/* Collections before the heap grows may take a third: growth cannot be undone. */
#define CULET_LIMIT_FORECAST_REST 2

enum culet_usage_kind {
    CULET_USAGE_GROUP,   /* a control group */
    CULET_USAGE_PSS,     /* the proportional set size of this process and its workers */
    CULET_USAGE_SPACE,   /* this process's address space (RLIMIT_AS) */
    CULET_USAGE_REPORTED /* what another process wrote into `reported` */
};

struct culet_usage {
    enum culet_usage_kind kind;
    struct culet_group group;   /* of it `charged` and `stat`, by descriptors: the process may have none left */
    _Atomic uint64_t *reported; /* CULET_USAGE_PSS writes it, too */
};

struct culet_limit_settings {
    uint64_t limit;
    struct culet_usage usage;
    int wakeup_fd; /* an eventfd that wakes the Ruby thread */
};

/* The settings and the usage are written with both the GVL and the lock, and read with either, except for the cluster's
 * count of forks. */
struct culet_limit_state {
    pthread_mutex_t lock;
    struct culet_limit_settings settings;
    struct culet_cluster cluster;
    _Atomic pid_t pid;     /* of the process that has the ticker; 0: none */
    _Atomic uint64_t used; /* at the last reading */
    _Atomic uint64_t readings;
    _Atomic uint64_t trims, trimmed_bytes;     /* by the ticker, and after collections */
    _Atomic uint64_t collections, freed_bytes; /* forced ones */
};
extern struct culet_limit_state culet_limit_state;

/* Whether this process watches a limit. Any thread, as all of these. */
int culet_limit_watched(void);

/* Reads the bytes in use: exactly from `percent` of the limit on, and anew if `fresh`. CULET_UNKNOWN: they cannot
 * be read. */
uint64_t culet_limit_read_used(unsigned percent, int fresh);

/* The bytes in use at this moment; CULET_UNKNOWN, too, if this process watches no limit. */
uint64_t culet_limit_used(void);

/* Whether `bytes` or more are in use. Reads the usage only if the last reading was near the limit, and then at once: the
 * ticker may not have run for a while on a busy machine. */
int culet_limit_full(uint64_t bytes);

/* Returns free memory, and records the bytes freed. */
void culet_limit_trim(struct culet_backoff *backoff, uint64_t limit);

/* The bytes that a step freed of this process's own memory; others change meanwhile. anonymous: bytes before. */
uint64_t culet_limit_freed(uint64_t anonymous);

/* Sets the workers that share the limit of this process, see culet_cluster_list. */
int culet_limit_list(const pid_t *workers, unsigned count, unsigned forks);
