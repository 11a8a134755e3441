#include "retain/sampled.h"

#include <inttypes.h>
#include <ruby/version.h>
#include <stdlib.h>

#include "retain/live_heap.h"
#include "retain/paths.h"

#define MOST_SITES 300
#define MOST_KEEPERS 3 /* of a site */

/* ---- the objects of blocks ---- */

struct blocks {
    struct culet_sampled *sampled;
    struct culet_numbers table; /* hash table of the samples' addresses: number of a sample + 1 */
    uintptr_t lowest, highest;
};

static uint32_t hash_of(uintptr_t block)
{
    return culet_hash(block >> 4);
}

static uint32_t hash_of_sample(const void *samples, uint32_t number)
{
    return hash_of((uintptr_t)((const struct culet_profile_samples *)samples)->list[number - 1].block);
}

static bool is_block(const struct culet_profile_sample *sample)
{
    return sample->kind == CULET_PROFILE_MALLOC && sample->block != NULL;
}

static bool make_table(struct blocks *blocks, struct culet_memory *memory)
{
    const struct culet_profile_samples *samples = blocks->sampled->samples;

    blocks->lowest = UINTPTR_MAX;
    for (size_t i = 0; i < samples->count; i++) {
        uintptr_t block = (uintptr_t)samples->list[i].block;
        if (!is_block(&samples->list[i]))
            continue;
        blocks->lowest = block < blocks->lowest ? block : blocks->lowest;
        blocks->highest = block > blocks->highest ? block : blocks->highest;
    }
    return culet_table_grow(memory, &blocks->table, 1, samples->count + 1, hash_of_sample, samples);
}

static void try_word(const struct blocks *blocks, uintptr_t word, uint32_t id)
{
    uint32_t mask = (uint32_t)blocks->table.count - 1, number;

    if (word < blocks->lowest || word > blocks->highest)
        return;
    for (uint32_t at = hash_of(word) & mask; (number = blocks->table.items[at]) != 0; at = (at + 1) & mask) {
        const struct culet_profile_sample *sample = &blocks->sampled->samples->list[number - 1];
        if (!is_block(sample) || (uintptr_t)sample->block != word)
            continue;
        if (blocks->sampled->ids.items[number - 1] == CULET_NO_ID)
            blocks->sampled->ids.items[number - 1] = id;
        return;
    }
}

static void try_words(const struct blocks *blocks, const uintptr_t *words, size_t bytes, uint32_t id)
{
    for (size_t i = 0; i < bytes / sizeof(*words); i++)
        try_word(blocks, words[i], id);
}

/* The table of a large Hash is a block of its own up to Ruby 3.2, as in internal/hash.h: its entries are others. */
static void try_table(const struct blocks *blocks, uintptr_t slot, uint32_t id)
{
#if RUBY_API_VERSION_MAJOR == 3 && RUBY_API_VERSION_MINOR < 3
    const uintptr_t *words = (const uintptr_t *)slot;
    const size_t table_bytes = 7 * sizeof(uintptr_t);

    if ((words[0] & RUBY_T_MASK) == T_HASH && (words[0] & RUBY_FL_USER3) != 0 && words[2] != 0)
        try_words(blocks, (const uintptr_t *)words[2], table_bytes, id);
#endif
}

/* Whatever the type and the version of Ruby, a slot has the address of its object's block. */
static void search_run(const struct blocks *blocks, const struct culet_live *live, const struct culet_heap_run *run)
{
    const size_t head = sizeof(struct RBasic);
    uint32_t id = run->first;

    for (uintptr_t at = run->start; at + run->slot_bytes <= run->past; at += run->slot_bytes, id++) {
        if (!culet_bits_has(&live->sets[LIVE_USED], id))
            continue;
        try_words(blocks, (const uintptr_t *)(at + head), run->slot_bytes - head, id);
        try_table(blocks, at, id);
    }
}

void culet_sampled_find(struct culet_sampled *sampled, struct culet_live *live)
{
    const struct culet_profile_samples *samples = sampled->samples;
    struct culet_memory *memory = live->graph.memory;
    struct blocks blocks = {.sampled = sampled};

    for (size_t i = 0; i < samples->count; i++) {
        const struct culet_profile_sample *sample = &samples->list[i];
        bool is_object = sample->kind == CULET_PROFILE_OBJECT && sample->block != NULL;
        if (!culet_numbers_add(memory, &sampled->ids,
                               is_object ? live->graph.functions->id_at(&live->graph, (uint64_t)sample->block)
                                         : CULET_NO_ID))
            return;
    }
    if (make_table(&blocks, memory))
        for (size_t i = 0; i < live->index.runs.count; i++)
            search_run(&blocks, live, &live->index.runs.items[i]);
    culet_numbers_free(memory, &blocks.table);
}

/* ---- sums by site and group ---- */

/* The memory of one site that one group keeps. */
struct kept {
    const struct culet_profile_sample *site; /* a sample of it */
    uint32_t group;
    uint32_t id; /* of an object */
    uint32_t samples;
    double bytes;
};

CULET_LIST(kepts, struct kept)

/* Those of a site are one behind the other. */
struct site {
    size_t first, count;
    double bytes;
};

CULET_LIST(sites, struct site)

static int compare_sites(const struct culet_profile_sample *a, const struct culet_profile_sample *b)
{
    const uint32_t one[] = {a->kind, a->stack, a->label, a->type}, other[] = {b->kind, b->stack, b->label, b->type};

    for (size_t i = 0; i < sizeof(one) / sizeof(*one); i++)
        if (one[i] != other[i])
            return one[i] < other[i] ? -1 : 1;
    return 0;
}

static int by_site_and_group(const void *one, const void *other)
{
    const struct kept *a = one, *b = other;
    int order = compare_sites(a->site, b->site);

    return order != 0 ? order : (a->group > b->group) - (a->group < b->group);
}

static int by_bytes(const void *one, const void *other)
{
    double a = ((const struct kept *)one)->bytes, b = ((const struct kept *)other)->bytes;

    return (a < b) - (a > b);
}

static int by_site_bytes(const void *one, const void *other)
{
    double a = ((const struct site *)one)->bytes, b = ((const struct site *)other)->bytes;

    return (a < b) - (a > b);
}

/* One for each sample whose object is reachable. */
static void list_reachable(const struct culet_analysis *analysis, const struct culet_sampled *sampled,
                           struct kepts *kepts)
{
    for (size_t i = 0; i < sampled->ids.count; i++) {
        const struct culet_profile_sample *sample = &sampled->samples->list[i];
        uint32_t id = sampled->ids.items[i];
        if (id == CULET_NO_ID || analysis->walk.entries.items[id] == 0)
            continue;
        (void)kepts_add(analysis->memory, kepts,
                        (struct kept){sample, culet_analysis_group(analysis, id), id, 1, sample->bytes});
    }
}

/* Makes one of those of a site and group, and lists the sites. */
static void add_up(const struct culet_analysis *analysis, struct kepts *kepts, struct sites *sites)
{
    size_t count = 0;

    kepts_sort(kepts, by_site_and_group);
    for (size_t i = 0; i < kepts->count; i++) {
        const struct kept *one = &kepts->items[i];
        struct kept *former = count > 0 ? &kepts->items[count - 1] : NULL;
        if (former == NULL || compare_sites(former->site, one->site) != 0)
            (void)sites_add(analysis->memory, sites, (struct site){.first = count});
        if (sites->count == 0)
            return;
        sites->items[sites->count - 1].bytes += one->bytes;
        if (former != NULL && by_site_and_group(former, one) == 0) {
            former->samples++;
            former->bytes += one->bytes;
            continue;
        }
        kepts->items[count++] = *one;
        sites->items[sites->count - 1].count++;
    }
    kepts->count = count;
    sites_sort(sites, by_site_bytes);
}

/* ---- the report ---- */

static void write_kept(struct culet_analysis *analysis, const struct kept *kept, const struct culet_shown *shown,
                       struct culet_buffer *out)
{
    long id;

    if (culet_analysis_shown(analysis, shown, kept->group, &id))
        culet_buffer_format(out, "[%ld", id);
    else
        culet_buffer_text(out, "[null");
    culet_buffer_format(out, ",%u,%" PRIu64 ",[", kept->samples, (uint64_t)kept->bytes);
    culet_paths_write_to(analysis, kept->id, 1, out);
    culet_buffer_text(out, "]]");
}

static void write_site(struct culet_analysis *analysis, const struct kepts *kepts, const struct site *site,
                       const struct culet_shown *shown, struct culet_buffer *out)
{
    struct kept *first = &kepts->items[site->first];

    qsort(first, site->count, sizeof(*first), by_bytes);
    culet_buffer_format(out, "[\"%c\",%u,%u,%u,%" PRIu64 ",[", first->site->kind == CULET_PROFILE_OBJECT ? 'o' : 'm',
                        first->site->stack, first->site->label, first->site->type, (uint64_t)site->bytes);
    for (size_t i = 0; i < site->count && i < MOST_KEEPERS; i++) {
        culet_buffer_comma(out);
        write_kept(analysis, &first[i], shown, out);
    }
    culet_buffer_text(out, "]]");
}

void culet_sampled_write(struct culet_analysis *analysis, const struct culet_sampled *sampled,
                         const struct culet_shown *shown, struct culet_buffer *out)
{
    struct kepts kepts = {NULL, 0, {NULL, 0}};
    struct sites sites = {NULL, 0, {NULL, 0}};

    list_reachable(analysis, sampled, &kepts);
    add_up(analysis, &kepts, &sites);
    culet_buffer_format(out, ",\"samples\":{\"started_ns\":%" PRIu64 ",\"generation\":%u,\"sites\":[",
                        sampled->samples->started_ns, sampled->samples->generation);
    for (size_t i = 0; i < sites.count && i < MOST_SITES && !culet_memory_exhausted(analysis->memory); i++) {
        culet_buffer_comma(out);
        write_site(analysis, &kepts, &sites.items[i], shown, out);
    }
    culet_buffer_text(out, "]}");
    kepts_free(analysis->memory, &kepts);
    sites_free(analysis->memory, &sites);
}
