/* growth.h - when the samples were added that make up the view growth, and what each site has gained since the base.
 *
 *   base                                                   survival                now
 *    |  period 0  |  period 1  |  ...  |  period 11         |  too young to count   |
 *
 * What grows all the time has survivors of all periods; what is filled once has survivors of a few. */
#pragma once

#include "tables.h"

#define CULET_PERIODS 12

struct culet_growth {
    uint64_t base_ns, survival_ns;                      /* equal: no sample can count yet */
    uint32_t *place;                                    /* by site: its index in `births`; 0: it has no growth */
    struct culet_profile_sums *born;                    /* by site: what is live of this phase, survivors or not */
    struct culet_profile_sums (*births)[CULET_PERIODS]; /* from 1 */
    size_t site_bytes, birth_bytes;
};

/* Whether a sample, which is live, counts as growth. */
bool culet_growth_has(const struct culet_tables *tables, const struct culet_sample *sample);

/* Of a copy. False: no memory. */
bool culet_growth_create(struct culet_growth *growth, const struct culet_tables *tables);
void culet_growth_destroy(struct culet_growth *growth);
