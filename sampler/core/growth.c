#include "growth.h"

#include "memory.h"

bool culet_growth_has(const struct culet_tables *t, const struct culet_sample *sample)
{
    return sample->phase == t->phase && t->epoch - sample->epoch >= CULET_PROFILE_SURVIVALS;
}

/* The clock of samples is coarse: a birth may seem to be outside of its phase. */
static size_t period_of(const struct culet_growth *growth, const struct culet_sample *sample)
{
    uint64_t length = growth->survival_ns - growth->base_ns;
    uint64_t age = sample->born_ns > growth->base_ns ? sample->born_ns - growth->base_ns : 0;
    double period = length ? (double)age / (double)length * CULET_PERIODS : 0;

    return period < CULET_PERIODS - 1 ? (size_t)period : CULET_PERIODS - 1;
}

static bool map_sites(struct culet_growth *growth, const struct culet_tables *t)
{
    growth->site_bytes = t->sites * (sizeof *growth->born + sizeof *growth->place);
    growth->born = culet_profile_map(growth->site_bytes);
    growth->place = (void *)(growth->born ? growth->born + t->sites : NULL);
    return growth->born;
}

/* Gives places to the sites that have growth. Returns how many there are. */
static uint32_t add_born(struct culet_growth *growth, const struct culet_tables *t)
{
    uint32_t count = 0;

    for (uint32_t i = 1; i < t->samples; i++) {
        const struct culet_sample *sample = &t->sample[i];
        if (!culet_sample_is_live(sample) || sample->phase != t->phase)
            continue;
        culet_sums_add(&growth->born[sample->site], sample);
        if (culet_growth_has(t, sample) && !growth->place[sample->site])
            growth->place[sample->site] = ++count;
    }
    return count;
}

static bool add_births(struct culet_growth *growth, const struct culet_tables *t, uint32_t count)
{
    growth->birth_bytes = (count + 1) * sizeof *growth->births;
    growth->births = culet_profile_map(growth->birth_bytes);
    for (uint32_t i = 1; growth->births && i < t->samples; i++) {
        const struct culet_sample *sample = &t->sample[i];
        if (culet_sample_is_live(sample) && culet_growth_has(t, sample))
            culet_sums_add(&growth->births[growth->place[sample->site]][period_of(growth, sample)], sample);
    }
    return growth->births;
}

bool culet_growth_create(struct culet_growth *growth, const struct culet_tables *t)
{
    uint64_t survival = culet_tables_survival_ns(t);

    *growth = (struct culet_growth){.base_ns = t->phase_ns};
    growth->survival_ns = survival > t->phase_ns ? survival : t->phase_ns;
    if (map_sites(growth, t) && add_births(growth, t, add_born(growth, t)))
        return true;
    culet_growth_destroy(growth);
    return false;
}

void culet_growth_destroy(struct culet_growth *growth)
{
    culet_profile_unmap(growth->births, growth->birth_bytes);
    culet_profile_unmap(growth->born, growth->site_bytes);
    *growth = (struct culet_growth){0};
}
