/* samples.h - the samples of a process, their sites, and the sums of each view.
 *
 *   sample --> site (stack, label, type, kind) --> sums: allocated, live, peak
 *
 * A sample lives in the table until it is removed; its number is its index. `growth` and `inherited` are made from the
 * live samples when the profile is written.
 *
 * Peak: a number is given to each new highest resident size. The first change of a site after that saves the site's live
 * sums as its peak sums. So the peak of a site is
 *
 *     site->peak_number == peak number   site->peak: it has changed since
 *     otherwise                          site->live: it has not
 *
 * One lock guards everything; a fork takes it. */
#ifndef CULET_PROFILE_SAMPLES_H
#define CULET_PROFILE_SAMPLES_H

#include "profile.h"
#include "stacks.h"

#define CULET_SAMPLES (1u << 20) /* live ones, at most: half a TiB at the default distance */
#define CULET_SITES (1u << 17)
#define CULET_SITE_INDEX (1u << 18) /* a power of two above the number of sites */

struct culet_site {
    uint32_t stack, label, type;
    uint32_t kind; /* enum culet_profile_kind */
    uint64_t peak_number;
    struct culet_profile_sums allocated, live, peak;
};

struct culet_sample {
    uint32_t site; /* or 0: not in use, and `size` is the number of the next free sample */
    uint32_t epoch, generation;
    uint64_t size;
    double weight;
};

struct culet_samples {
    struct culet_stacks stacks;
    struct culet_site *site;     /* from 1 */
    uint32_t *site_index;        /* hash of the key to site, 0: empty; open addressing */
    uint32_t sites;              /* in use, site 0 among them */
    struct culet_sample *sample; /* from 1 */
    uint32_t samples;            /* in use or free, sample 0 among them */
    uint32_t free;               /* the first free one, or 0 */
    uint32_t epoch, generation;
    uint64_t lost;
    double live_bytes;
    uint64_t resident, peak_resident, peak_number;
    uint64_t sample_bytes, started_ns;
};

/* What the library that samples does when a profile starts and ends; either may be NULL. `resident` returns the resident
 * bytes of the heap, cheaply and without locks; NULL: the live bytes are taken. */
struct culet_profile_host {
    void (*started)(void);
    void (*stopped)(void);
    uint64_t (*resident)(void);
};
void culet_profile_set_host(const struct culet_profile_host *host);

extern const struct culet_profile_api culet_profile_api;

/* Whether the calling thread is inside the profile: what it allocates is not to be sampled. */
bool culet_profile_inside(void);

/* Around fork, by the library that samples. */
void culet_profile_prepare(void);
void culet_profile_parent(void);
void culet_profile_child(void);

/* A copy of the tables in memory of its own, to be ended by culet_profile_release. False: no memory, or no profile. */
bool culet_profile_copy(struct culet_samples *copy);
void culet_profile_release(struct culet_samples *copy);

/* The part of the stream that is known here (profile.h). */
bool culet_profile_write(culet_profile_output *output, void *data, uint64_t *lines);

#endif
