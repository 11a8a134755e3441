#include "tables.h"

#include "memory.h"

#include <string.h>

/* ---- memory ---- */

void culet_tables_destroy(struct culet_tables *t)
{
    culet_stacks_destroy(&t->stacks);
    culet_profile_unmap(t->site, CULET_SITES * sizeof *t->site);
    culet_index_destroy(&t->site_index);
    culet_profile_unmap(t->sample, CULET_SAMPLES * sizeof *t->sample);
    *t = (struct culet_tables){0};
}

bool culet_tables_create(struct culet_tables *t)
{
    *t = (struct culet_tables){.sites = 1, .samples = 1};
    t->site = culet_profile_map(CULET_SITES * sizeof *t->site);
    t->sample = culet_profile_map(CULET_SAMPLES * sizeof *t->sample);
    if (culet_stacks_create(&t->stacks) && culet_index_create(&t->site_index) && t->site && t->sample)
        return true;
    culet_tables_destroy(t);
    return false;
}

void culet_tables_restart(struct culet_tables *t, struct culet_tables *fresh)
{
    struct culet_tables former = *t;

    *t = *fresh;
    t->generation = former.generation;
    t->phase = former.phase;
    t->fork_phase = former.fork_phase;
    t->forked = former.forked;
    if (former.sample)
        t->next_id = former.next_id;
    *fresh = former;
    if (!former.sample)
        return;
    fresh->sample = t->sample;
    t->sample = former.sample;
    t->samples = former.samples;
    t->free = former.free;
    for (uint32_t i = 1; i < t->samples; i++)
        if (t->sample[i].site != CULET_NO_SITE)
            t->sample[i].site = CULET_FORMER_SITE;
}

/* ---- sums ---- */

void culet_sums_add(struct culet_profile_sums *sums, const struct culet_sample *sample)
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
static void save_peak(const struct culet_tables *t, struct culet_site *site)
{
    if (site->peak_number != t->peak_number) {
        site->peak_number = t->peak_number;
        site->peak = site->live;
    }
}

void culet_tables_set_resident(struct culet_tables *t, uint64_t resident)
{
    t->resident = resident;
    if (resident > t->peak_resident) {
        t->peak_resident = resident;
        t->peak_number++;
    }
}

/* ---- phases ---- */

void culet_tables_set_base(struct culet_tables *t, const struct culet_moment *now)
{
    t->phase++;
    t->base_ns = now->real_ns;
    t->phase_ns = now->ns;
    t->base_resident = now->resident;
}

void culet_tables_next_epoch(struct culet_tables *t, uint64_t now_ns)
{
    t->epoch_ns[++t->epoch % CULET_PROFILE_SURVIVALS] = now_ns;
}

/* A sample of the epoch before that one has been through this one and those since. */
uint64_t culet_tables_survival_ns(const struct culet_tables *t)
{
    return t->epoch < CULET_PROFILE_SURVIVALS ? 0 : t->epoch_ns[(t->epoch + 1) % CULET_PROFILE_SURVIVALS];
}

/* The peak is that of this process: what it has inherited and still uses was live then. */
void culet_tables_forked(struct culet_tables *t, const struct culet_moment *now, uint32_t random)
{
    t->generation++;
    culet_tables_set_base(t, now);
    t->fork_phase = t->phase;
    t->forked = false;
    t->next_id = random;
    t->peak_resident = 0;
    t->peak_number++;
}

struct culet_profile_sums culet_site_allocated(const struct culet_tables *t, const struct culet_site *site)
{
    return site->generation == t->generation ? site->allocated : (struct culet_profile_sums){0};
}

struct culet_profile_sums culet_site_dropped(const struct culet_tables *t, const struct culet_site *site)
{
    return site->dropped_phase == t->phase ? site->dropped : (struct culet_profile_sums){0};
}

/* ---- sites ---- */

static uint64_t hash(const struct culet_site *key)
{
    return culet_index_mix(((uint64_t)key->stack << 32 | key->label) ^ ((uint64_t)key->type << 20 | key->kind << 8));
}

static uint64_t hash_of(const void *tables, uint32_t number)
{
    return hash(&((const struct culet_tables *)tables)->site[number]);
}

/* The site of that key; CULET_NO_SITE if there is no room. */
static uint32_t find_site(struct culet_tables *t, const struct culet_site *key)
{
    struct culet_index *index = &t->site_index;
    bool room = culet_index_reserve(index, hash_of, t);
    uint32_t at = culet_index_first(index, hash(key)), number;

    for (; (number = index->slot[at]); at = culet_index_next(index, at)) {
        const struct culet_site *site = &t->site[number];
        if (site->stack == key->stack && site->label == key->label && site->type == key->type &&
            site->kind == key->kind)
            return number;
    }
    if (!room || t->sites == CULET_SITES)
        return CULET_NO_SITE;
    t->site[t->sites] = (struct culet_site){.stack = key->stack,
                                            .label = key->label,
                                            .type = key->type,
                                            .kind = key->kind,
                                            .generation = t->generation,
                                            /* Nothing of it was live at the peak. */
                                            .peak_number = t->peak_number};
    culet_index_add(index, at, t->sites);
    return t->sites++;
}

/* ---- samples ---- */

/* A free sample; 0 if there is no room. */
static uint32_t take_sample(struct culet_tables *t)
{
    uint32_t number = t->free;

    if (number) {
        t->free = (uint32_t)t->sample[number].size;
        return number;
    }
    return t->samples < CULET_SAMPLES ? t->samples++ : 0;
}

uint32_t culet_tables_add(struct culet_tables *t, const struct culet_site *key, const struct culet_sample *what)
{
    uint32_t at = find_site(t, key), number = at != CULET_NO_SITE ? take_sample(t) : 0;
    struct culet_sample *sample = &t->sample[number];
    struct culet_site *site = &t->site[at];

    if (!number) {
        t->no_site += at == CULET_NO_SITE;
        t->no_sample += at != CULET_NO_SITE;
        return 0;
    }
    t->added++;
    *sample = *what;
    sample->site = at;
    sample->epoch = t->epoch;
    sample->phase = t->phase;
    sample->id = t->next_id++;
    save_peak(t, site);
    site->allocated = culet_site_allocated(t, site);
    site->generation = t->generation;
    culet_sums_add(&site->allocated, sample);
    culet_sums_add(&site->live, sample);
    t->live_bytes += sample->weight * (double)sample->size;
    return number;
}

/* A sample from before this phase. */
static void drop(const struct culet_tables *t, struct culet_site *site, const struct culet_sample *sample)
{
    site->dropped = culet_site_dropped(t, site);
    site->dropped_phase = t->phase;
    culet_sums_add(&site->dropped, sample);
}

void culet_tables_remove(struct culet_tables *t, uint32_t number)
{
    if (!number || number >= t->samples || t->sample[number].site == CULET_NO_SITE)
        return;
    struct culet_sample *sample = &t->sample[number];
    if (sample->site != CULET_FORMER_SITE) {
        struct culet_site *site = &t->site[sample->site];
        save_peak(t, site);
        subtract(&site->live, sample);
        if (sample->phase != t->phase)
            drop(t, site, sample);
        t->live_bytes -= sample->weight * (double)sample->size;
        t->live_bytes = t->live_bytes > 0 ? t->live_bytes : 0;
        t->freed++;
    }
    sample->site = CULET_NO_SITE;
    sample->size = t->free;
    t->free = number;
}

/* ---- the largest sites ---- */

/* Puts a site into a list of `count` sites, the largest first, that has room for one more. */
static void insert_site(struct culet_profile_top_site *list, size_t count, const struct culet_site *site)
{
    size_t at = count;

    for (; at > 0 && list[at - 1].live.bytes < site->live.bytes; at--)
        list[at] = list[at - 1];
    list[at] = (struct culet_profile_top_site){
        .kind = site->kind, .stack = site->stack, .label = site->label, .type = site->type, .live = site->live};
}

/* Returns the number of the sites. */
static size_t find_largest(const struct culet_tables *t, struct culet_profile_top *top)
{
    size_t count = 0;

    for (uint32_t i = 1; i < t->sites; i++) {
        const struct culet_site *site = &t->site[i];
        double *sum = site->kind == CULET_PROFILE_OBJECT ? &top->object_bytes : &top->malloc_bytes;
        *sum += site->live.bytes;
        if (!site->live.samples || !top->site_count)
            continue;
        if (count == top->site_count && site->live.bytes <= top->sites[count - 1].live.bytes)
            continue;
        count -= count == top->site_count;
        insert_site(top->sites, count++, site);
    }
    return count;
}

/* Adds the nodes of a stack that are not in the list yet, callers first. False: no room. */
static bool add_nodes(struct culet_tables *t, struct culet_profile_top *top, size_t *count, uint32_t stack)
{
    struct culet_stack_node *node = t->stacks.node;
    size_t missing = 0;

    for (uint32_t at = stack; at && node[at].mark != t->tops; at = node[at].parent)
        missing++;
    if (missing > top->node_count - *count)
        return false;
    *count += missing;
    for (size_t to = *count; missing--; stack = node[stack].parent) {
        node[stack].mark = t->tops;
        top->nodes[--to] = (struct culet_profile_top_node){stack, node[stack].parent, node[stack].word};
    }
    return true;
}

void culet_tables_top(struct culet_tables *t, struct culet_profile_top *top)
{
    size_t sites, nodes = 0, found = 0;

    t->tops++;
    top->malloc_bytes = top->object_bytes = 0;
    sites = find_largest(t, top);
    while (found < sites && add_nodes(t, top, &nodes, top->sites[found].stack))
        found++;
    top->site_count = found;
    top->node_count = nodes;
    top->sample_bytes = t->sample_bytes;
    top->started_ns = t->started_ns;
    top->lost = t->no_site + t->no_sample;
    top->resident = t->resident;
    top->peak_resident = t->peak_resident;
    top->epoch = t->epoch;
    top->generation = t->generation;
}

/* ---- samples since the base ---- */

void culet_tables_samples(const struct culet_tables *t, struct culet_profile_samples *samples)
{
    size_t room = samples->count;
    uint32_t step = room ? (uint32_t)(t->samples / room + 1) : t->samples;

    samples->count = 0;
    samples->started_ns = t->started_ns;
    samples->generation = t->generation;
    for (uint32_t i = 1; i < t->samples; i += step) {
        const struct culet_sample *sample = &t->sample[i];
        if (!culet_sample_is_live(sample) || sample->phase != t->phase)
            continue;
        const struct culet_site *site = &t->site[sample->site];
        samples->list[samples->count++] = (struct culet_profile_sample){.kind = site->kind,
                                                                        .stack = site->stack,
                                                                        .label = site->label,
                                                                        .type = site->type,
                                                                        .number = i,
                                                                        .block = sample->block,
                                                                        .bytes = sample->weight * (double)sample->size};
    }
}

/* ---- copies ---- */

static uint32_t with_reserve(uint32_t count)
{
    return count + count / 8 + 256;
}

bool culet_copy_map(struct culet_copy *copy, const struct culet_tables *counts)
{
    struct culet_tables *t = &copy->tables;

    *t = (struct culet_tables){.stacks.count = with_reserve(counts->stacks.count),
                               .sites = with_reserve(counts->sites),
                               .samples = with_reserve(counts->samples)};
    size_t sites = t->sites * sizeof *t->site, samples = t->samples * sizeof *t->sample;
    copy->bytes = sites + samples + t->stacks.count * sizeof *t->stacks.node;
    copy->memory = culet_profile_map(copy->bytes);
    if (!copy->memory)
        return false;
    /* The page faults are taken here, and not while the tables are locked. */
    memset(copy->memory, 0, copy->bytes);
    t->site = copy->memory;
    t->sample = (void *)((char *)copy->memory + sites);
    t->stacks.node = (void *)((char *)t->sample + samples);
    return true;
}

bool culet_copy_fill(struct culet_copy *copy, const struct culet_tables *tables)
{
    struct culet_tables *t = &copy->tables, former = *t;

    if (tables->stacks.count > t->stacks.count || tables->sites > t->sites || tables->samples > t->samples)
        return false;
    *t = *tables;
    t->site_index = t->stacks.index = (struct culet_index){0};
    t->site = memcpy(former.site, tables->site, tables->sites * sizeof *t->site);
    t->sample = memcpy(former.sample, tables->sample, tables->samples * sizeof *t->sample);
    t->stacks.node = memcpy(former.stacks.node, tables->stacks.node, tables->stacks.count * sizeof *t->stacks.node);
    return true;
}

void culet_copy_unmap(struct culet_copy *copy)
{
    culet_profile_unmap(copy->memory, copy->bytes);
    *copy = (struct culet_copy){0};
}
