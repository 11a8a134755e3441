/* tables.h - samples, their sites, and the sums of each view. The caller locks.
 *
 *   sample --> site (stack, label, type, kind) --> sums: allocated, live, peak
 *
 * A sample is in the table until it is removed; its number is its index. `growth` and `inherited` are summed from the live
 * samples when the profile is written (writer.c). A phase ends with a fork, in the child, and with the end of a boot:
 *
 *     inherited   sample->phase <  fork_phase
 *     growth      sample->phase == phase, and old enough
 *
 * `site->dropped` are the samples that were live when the phase `site->dropped_phase` began, and have been removed in it.
 * What is live of a phase's samples, less what was dropped in it, is by how much the site has grown since.
 *
 * `site->allocated` is of the generation `site->generation`, which the first sample of a later one sets to 0.
 *
 * Peak: each new highest resident size has a number. The first change of a site after that saves the site's live sums as
 * its peak sums. So the peak of a site is
 *
 *     site->peak_number == peak_number   site->peak: it has changed since
 *     otherwise                          site->live: it has not
 *
 * A new profile has new sites and stacks, and the same table of samples: blocks still have the numbers of samples of the
 * former profile, which become free when they are removed. */
#pragma once

#include "profile.h"
#include "stacks.h"

#define CULET_SAMPLES (1u << 20) /* live ones, at most: half a TiB at the default distance */
#define CULET_SITES (1u << 17)

struct culet_site {
    uint32_t stack, label, type;
    uint32_t kind;       /* enum culet_profile_kind */
    uint32_t generation; /* of `allocated` */
    uint64_t peak_number;
    struct culet_profile_sums allocated, live, peak;
    uint32_t dropped_phase; /* of `dropped` */
    struct culet_profile_sums dropped;
};

/* Why a sample that was due was not taken. */
enum culet_skip {
    CULET_SKIP_INSIDE,  /* the profile's own code allocated, or a signal handler that interrupted it */
    CULET_SKIP_FORKING, /* the thread forks, or the process is a child that the allocator does not know of */
    CULET_SKIP_MEMORY,  /* there was none for the block */
    CULET_SKIPS,
};

#define CULET_NO_SITE 0u             /* the sample is free; `size` is the number of the next free one */
#define CULET_FORMER_SITE UINT32_MAX /* the sample is of a former profile */

struct culet_sample {
    uint32_t site;
    uint32_t epoch, phase;
    uint32_t id; /* the same in all processes that have it by a fork */
    uint64_t size;
    double weight;
    const void *block; /* NULL: not known */
    uint64_t born_ns;  /* as culet_tables.phase_ns */
};

static inline bool culet_sample_is_live(const struct culet_sample *sample)
{
    return sample->site != CULET_NO_SITE && sample->site != CULET_FORMER_SITE;
}

struct culet_tables {
    struct culet_stacks stacks;
    struct culet_site *site; /* from 1 */
    struct culet_index site_index;
    uint32_t sites;              /* in use, site 0 among them */
    struct culet_sample *sample; /* from 1; NULL: there was no profile yet */
    uint32_t samples;            /* in use or free, sample 0 among them */
    uint32_t free;               /* the first free one, or 0 */
    uint32_t epoch, generation;
    uint32_t phase, fork_phase; /* the present one; the first one of this process */
    uint32_t next_id;           /* from a random number on, so that processes do not give out the others' */
    bool forked;                /* another process was forked from this one */
    uint64_t base_ns;           /* when the phase began */
    uint64_t phase_ns;          /* likewise, by a clock that is not set; 0: unknown */
    uint64_t base_resident;     /* what was resident then; 0: unknown */
    uint64_t epoch_ns[CULET_PROFILE_SURVIVALS]; /* when the last epochs began, by their number */
    uint64_t added, freed;                      /* samples of this profile */
    uint64_t no_site, no_sample;                /* those that found no room */
    uint64_t skipped[CULET_SKIPS];              /* in copies, as the next one */
    uint64_t taken_resident;                    /* what is resident when the copy is made; 0: unknown */
    double live_bytes;
    uint64_t resident, peak_resident, peak_number;
    uint64_t sample_bytes, started_ns;
    uint32_t tops; /* calls of culet_tables_top */
};

/* Maps the tables of an empty profile. False: no memory. */
bool culet_tables_create(struct culet_tables *tables);
void culet_tables_destroy(struct culet_tables *tables);

/* Begins an empty profile with the tables of `fresh`, which gets those of the former profile. */
void culet_tables_restart(struct culet_tables *tables, struct culet_tables *fresh);

/* Adds a sample, of which size, weight, block and born_ns are set, to the site with the key's stack, label, type and kind.
 * Returns its number, or 0 if there is no room. */
uint32_t culet_tables_add(struct culet_tables *tables, const struct culet_site *key, const struct culet_sample *sample);

/* Any number, also one that is free. */
void culet_tables_remove(struct culet_tables *tables, uint32_t number);

/* A moment: by CLOCK_REALTIME, by a clock that is not set, and what is resident then. */
struct culet_moment {
    uint64_t real_ns, ns, resident;
};

/* Growth is what is added from now on. */
void culet_tables_set_base(struct culet_tables *tables, const struct culet_moment *now);

void culet_tables_next_epoch(struct culet_tables *tables, uint64_t now_ns);

/* When the last epoch began that a sample must be older than to count as growth; 0: there was none. */
uint64_t culet_tables_survival_ns(const struct culet_tables *tables);

/* In a forked child. `random`: another number in each process. */
void culet_tables_forked(struct culet_tables *tables, const struct culet_moment *now, uint32_t random);

/* What the site has lost in this phase of what was live before. */
struct culet_profile_sums culet_site_dropped(const struct culet_tables *tables, const struct culet_site *site);

/* What the site has allocated in this process. */
struct culet_profile_sums culet_site_allocated(const struct culet_tables *tables, const struct culet_site *site);

/* After each added sample: the resident size may be the highest so far. */
void culet_tables_set_resident(struct culet_tables *tables, uint64_t resident);

/* As culet_profile_api.top, which see. */
void culet_tables_top(struct culet_tables *tables, struct culet_profile_top *top);

/* As culet_profile_api.samples. */
void culet_tables_samples(const struct culet_tables *tables, struct culet_profile_samples *samples);

void culet_sums_add(struct culet_profile_sums *sums, const struct culet_sample *sample);

/* A copy, without the indexes. */
struct culet_copy {
    struct culet_tables tables;
    void *memory;
    size_t bytes;
};

/* Maps memory for a copy of tables with these numbers of stacks, sites and samples, which may grow a little meanwhile.
 * False: no memory. */
bool culet_copy_map(struct culet_copy *copy, const struct culet_tables *counts);
/* Neither allocates nor waits. False: the tables have outgrown the memory. */
bool culet_copy_fill(struct culet_copy *copy, const struct culet_tables *tables);
void culet_copy_unmap(struct culet_copy *copy);
