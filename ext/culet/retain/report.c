#include "retain/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reader/src/base/search.h"
#include "reading/clock.h"
#include "retain/duplicates.h"
#include "retain/paths.h"
#include "retain/ranking.h"
#include "retain/sampled.h"
#include "retain/tree.h"

#define SHOWN_HOLDERS 1000
#define SHOWN_SETS 500
#define SHOWN_CLASSES 5000
#define CLASSES_OF_GROUP 10
#define MOST_PATHS 3
#define MOST_SHARED 2000 /* largest sets whose holders are to be shown */

struct report {
    struct culet_analysis *analysis;
    const struct culet_retain_options *options;
    struct culet_buffer *out;
    struct culet_shown shown;
    struct culet_numbers pairs; /* numbers of pairs of group and class, by group, largest first */
};

/* ---- order ---- */

static uint32_t holder_count(const struct report *report)
{
    return (uint32_t)report->analysis->graph->holders.count;
}

static const struct culet_holder_set *set_of(const struct report *report, uint32_t group)
{
    return &report->analysis->sets.sets.items[group - holder_count(report)];
}

static void take(struct report *report, struct culet_ranking *ranking, struct culet_numbers *shown, size_t most)
{
    for (size_t i = 0; i < ranking->count && i < most; i++) {
        (void)culet_numbers_add(report->analysis->memory, shown, ranking->items[i].number);
        report->shown.places.items[ranking->items[i].number] = (uint32_t)shown->count;
    }
}

static void sort_by_own_bytes(const struct report *report, struct culet_ranking *holders)
{
    for (size_t i = 0; i < holders->count; i++)
        holders->items[i].weight = report->analysis->of_group.items[holders->items[i].number].bytes;
    culet_ranking_order(holders);
}

/* A holder counts with what it shares, so that the holders of large sets are shown. */
static void rank_holders(const struct report *report, const struct culet_ranking *sets, struct culet_ranking *holders)
{
    const struct culet_retained *of_group = report->analysis->of_group.items;

    for (uint32_t group = 0; group < holder_count(report); group++)
        if (!culet_ranking_add(report->analysis->memory, holders, (struct culet_ranked){of_group[group].bytes, group}))
            return;
    for (size_t i = 0; i < sets->count && i < MOST_SHARED; i++) {
        const struct culet_holder_set *set = set_of(report, sets->items[i].number);
        for (uint32_t j = 0; j < set->count; j++)
            holders->items[set->holders[j]].weight += sets->items[i].weight;
    }
    culet_ranking_order(holders);
    while (holders->count > 0 && (holders->count > SHOWN_HOLDERS || holders->items[holders->count - 1].weight == 0))
        holders->count--;
    sort_by_own_bytes(report, holders);
}

static void choose(struct report *report)
{
    struct culet_memory *memory = report->analysis->memory;
    struct culet_ranking holders = {NULL, 0, {NULL, 0}}, sets = {NULL, 0, {NULL, 0}};
    uint32_t groups = (uint32_t)report->analysis->of_group.count;

    if (culet_numbers_reserve(memory, &report->shown.places, groups + 1) &&
        culet_ranking_of_groups(report->analysis, holder_count(report), groups, &sets)) {
        rank_holders(report, &sets, &holders);
        take(report, &holders, &report->shown.holders, SHOWN_HOLDERS);
        take(report, &sets, &report->shown.sets, SHOWN_SETS);
    }
    culet_ranking_free(memory, &holders);
    culet_ranking_free(memory, &sets);
}

/* ---- classes ---- */

static const struct culet_class_sum *pair_at(const struct report *report, uint32_t number)
{
    return &report->analysis->pairs.list.items[number];
}

static uint32_t group_of(const struct culet_class_sum *pair)
{
    return (uint32_t)(pair->key >> 32);
}

static int by_bytes(const void *one, const void *other)
{
    const struct culet_class_sum *a = one, *b = other;

    if (a->all.bytes != b->all.bytes)
        return a->all.bytes < b->all.bytes ? 1 : -1;
    return (a->key > b->key) - (a->key < b->key);
}

static int by_group_and_bytes(const void *one, const void *other, void *report)
{
    const struct culet_class_sum *a = pair_at(report, *(const uint32_t *)one);
    const struct culet_class_sum *b = pair_at(report, *(const uint32_t *)other);

    if (group_of(a) != group_of(b))
        return group_of(a) < group_of(b) ? -1 : 1;
    return by_bytes(a, b);
}

static void sort_pairs(struct report *report)
{
    for (uint32_t i = 0; i < report->analysis->pairs.list.count; i++)
        if (report->shown.places.items[group_of(pair_at(report, i))] != 0)
            (void)culet_numbers_add(report->analysis->memory, &report->pairs, i);
    if (report->pairs.count > 0)
        qsort_r(report->pairs.items, report->pairs.count, sizeof(uint32_t), by_group_and_bytes, report);
}

static size_t first_pair(const struct report *report, uint32_t group)
{
    return CULET_FIRST_WHERE(i, 0, report->pairs.count, group_of(pair_at(report, report->pairs.items[i])) >= group);
}

static void write_class_row(struct report *report, uint64_t key, const struct culet_retained *sum)
{
    const struct culet_buffer *name = culet_analysis_class_name(report->analysis, key);

    culet_buffer_text(report->out, "[");
    culet_buffer_json_string(report->out, name->bytes, name->length);
    culet_buffer_format(report->out, ",%" PRIu64 ",%" PRIu64 "]", sum->objects, sum->bytes);
}

static void write_classes_of(struct report *report, uint32_t group)
{
    size_t at = first_pair(report, group);

    culet_buffer_text(report->out, "\"classes\":[");
    for (int i = 0; i < CLASSES_OF_GROUP && at < report->pairs.count; i++, at++) {
        const struct culet_class_sum *pair = pair_at(report, report->pairs.items[at]);
        if (group_of(pair) != group)
            break;
        culet_buffer_comma(report->out);
        write_class_row(report, report->analysis->classes.list.items[(uint32_t)pair->key - 1].key, &pair->all);
    }
    culet_buffer_text(report->out, "]");
}

/* Last of all, because it changes the classes' order. */
static void write_classes(struct report *report)
{
    struct culet_class_sum_list *classes = &report->analysis->classes.list;

    culet_class_sum_list_sort(classes, by_bytes);
    culet_buffer_text(report->out, ",\"classes\":[");
    for (size_t i = 0; i < classes->count && i < SHOWN_CLASSES; i++) {
        culet_buffer_comma(report->out);
        write_class_row(report, classes->items[i].key, &classes->items[i].all);
    }
    culet_buffer_text(report->out, "]");
}

/* ---- holders and sets ---- */

static void write_place(struct report *report, const struct culet_buffer *file, long line)
{
    culet_buffer_text(report->out, ",\"file\":");
    if (file->length > 0)
        culet_buffer_json_string(report->out, file->bytes, file->length);
    else
        culet_buffer_text(report->out, "null");
    if (file->length > 0 && line > 0)
        culet_buffer_format(report->out, ",\"line\":%ld", line);
    else
        culet_buffer_text(report->out, ",\"line\":null");
}

static void write_sums(struct report *report, uint32_t group)
{
    const struct culet_retained *sum = &report->analysis->of_group.items[group];

    culet_buffer_format(report->out, "\"bytes\":%" PRIu64 ",\"objects\":%" PRIu64 ",", sum->bytes, sum->objects);
}

static void write_holder(struct report *report, uint32_t index, size_t id)
{
    struct culet_graph *graph = report->analysis->graph;
    const struct culet_holder *holder = &graph->holders.items[index];
    long line;
    const struct culet_buffer *name = culet_analysis_holder_name(report->analysis, index, &line);

    culet_buffer_format(report->out, "{\"id\":%zu,\"kind\":\"%s\",\"name\":", id, culet_holder_kind_name(holder->kind));
    culet_buffer_json_string(report->out, name->bytes, name->length);
    write_place(report, &report->analysis->file, line);
    culet_buffer_text(report->out, ",");
    if (holder->targets == 1)
        culet_paths_write_object(report->analysis, graph->targets.items[holder->first], report->out);
    else
        culet_buffer_text(report->out, "\"class\":null,\"address\":null");
    culet_buffer_text(report->out, ",");
    write_sums(report, index);
    write_classes_of(report, index);
    culet_buffer_text(report->out, ",\"path\":");
    culet_paths_write_heaviest(report->analysis, index, report->out);
    culet_buffer_text(report->out, "}");
}

/* The sums of the groups of a range that are not shown. */
static void write_others(struct report *report, const char *name, const char *count_name, uint32_t from, uint32_t past)
{
    struct culet_retained sum = {0, 0};
    uint64_t count = 0;

    for (uint32_t group = from; group < past; group++) {
        const struct culet_retained *one = &report->analysis->of_group.items[group];
        if (one->objects == 0 || report->shown.places.items[group] != 0)
            continue;
        count++;
        sum.bytes += one->bytes;
        sum.objects += one->objects;
    }
    culet_buffer_format(report->out, ",\"%s\":{\"%s\":%" PRIu64 ",\"objects\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", name,
                        count_name, count, sum.objects, sum.bytes);
}

static void write_holders(struct report *report)
{
    culet_buffer_text(report->out, ",\"holders\":[");
    for (size_t i = 0; i < report->shown.holders.count; i++) {
        culet_buffer_comma(report->out);
        write_holder(report, report->shown.holders.items[i], i);
    }
    culet_buffer_text(report->out, "]");
    write_others(report, "other_holders", "holders", 0, holder_count(report));
}

/* An object of the group's largest class. */
static uint32_t example_of(const struct report *report, uint32_t group)
{
    size_t at = first_pair(report, group);

    return pair_at(report, report->pairs.items[at])->first;
}

static void write_set(struct report *report, uint32_t group)
{
    const struct culet_holder_set *set = set_of(report, group);

    culet_buffer_text(report->out, "{");
    culet_analysis_write_groups(report->analysis, &report->shown, set->holders, set->count, report->out);
    culet_buffer_text(report->out, ",");
    write_sums(report, group);
    write_classes_of(report, group);
    culet_buffer_text(report->out, ",\"paths\":[");
    culet_paths_write_to(report->analysis, example_of(report, group), MOST_PATHS, report->out);
    culet_buffer_text(report->out, "]}");
}

static void write_sets(struct report *report)
{
    culet_buffer_text(report->out, ",\"sets\":[");
    for (size_t i = 0; i < report->shown.sets.count; i++) {
        culet_buffer_comma(report->out);
        write_set(report, report->shown.sets.items[i]);
    }
    culet_buffer_text(report->out, "]");
    write_others(report, "other_sets", "sets", holder_count(report), (uint32_t)report->analysis->of_group.count);
}

/* ---- what was asked for ---- */

static bool is_class(const struct report *report, uint64_t key)
{
    const struct culet_buffer *name = culet_analysis_class_name(report->analysis, key);
    size_t length = strlen(report->options->class_name);

    return name->length == length && memcmp(name->bytes, report->options->class_name, length) == 0;
}

/* The pairs of the class with a number and a group that is shown, the largest first. */
static void rank_groups(const struct report *report, uint32_t number, struct culet_ranking *ranking)
{
    for (size_t i = 0; i < report->pairs.count; i++) {
        const struct culet_class_sum *pair = pair_at(report, report->pairs.items[i]);
        if ((uint32_t)pair->key == number + 1)
            (void)culet_ranking_add(report->analysis->memory, ranking,
                                    (struct culet_ranked){pair->all.bytes, report->pairs.items[i]});
    }
    culet_ranking_order(ranking);
}

static void write_group_row(struct report *report, const struct culet_class_sum *pair)
{
    long id;

    (void)culet_analysis_shown(report->analysis, &report->shown, group_of(pair), &id);
    culet_buffer_comma(report->out);
    culet_buffer_format(report->out, "[%ld,%" PRIu64 ",%" PRIu64 "]", id, pair->all.objects, pair->all.bytes);
}

static void write_selected_class(struct report *report)
{
    const struct culet_class_sum_list *classes = &report->analysis->classes.list;
    struct culet_ranking groups = {NULL, 0, {NULL, 0}};
    struct culet_retained sum = {0, 0};
    uint32_t number = 0;

    while (number < classes->count && !is_class(report, classes->items[number].key))
        number++;
    if (number < classes->count)
        sum = classes->items[number].all;
    rank_groups(report, number, &groups);
    culet_buffer_text(report->out, "{\"class\":");
    culet_buffer_json_string(report->out, report->options->class_name, strlen(report->options->class_name));
    culet_buffer_format(report->out, ",\"objects\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"holders\":[", sum.objects,
                        sum.bytes);
    for (size_t i = 0; i < groups.count; i++)
        write_group_row(report, pair_at(report, groups.items[i].number));
    culet_buffer_text(report->out, "],\"paths\":[");
    for (size_t i = 0; i < groups.count && i < MOST_PATHS; i++)
        culet_paths_write_to(report->analysis, pair_at(report, groups.items[i].number)->first, 1, report->out);
    culet_buffer_text(report->out, "]}");
    culet_ranking_free(report->analysis->memory, &groups);
}

/* Returns whether the object was found. */
static bool write_selected_object(struct report *report)
{
    struct culet_analysis *analysis = report->analysis;
    struct culet_graph *graph = analysis->graph;
    uint32_t id = graph->functions->id_at(graph, report->options->address), entry, group;
    uint64_t bytes, retained;

    if (id == UINT32_MAX || (entry = analysis->walk.entries.items[id]) == 0)
        return false;
    bytes = culet_graph_bytes(graph, id);
    retained = entry & CULET_LEAF ? bytes : analysis->of_node.items[entry].bytes;
    group = culet_analysis_group(analysis, id);
    culet_buffer_text(report->out, "{");
    culet_paths_write_object(analysis, id, report->out);
    culet_buffer_format(report->out, ",\"bytes\":%" PRIu64 ",\"retained_bytes\":%" PRIu64 ",", bytes, retained);
    if (group < holder_count(report))
        culet_analysis_write_groups(analysis, &report->shown, &group, 1, report->out);
    else
        culet_analysis_write_groups(analysis, &report->shown, set_of(report, group)->holders,
                                    set_of(report, group)->count, report->out);
    culet_buffer_text(report->out, ",\"paths\":[");
    culet_paths_write_to(analysis, id, MOST_PATHS, report->out);
    culet_buffer_text(report->out, "]}");
    return true;
}

static const char *write_selected(struct report *report)
{
    culet_buffer_text(report->out, ",\"selected\":");
    if (report->options->class_name[0] != '\0')
        write_selected_class(report);
    else if (report->options->address == 0)
        culet_buffer_text(report->out, "null");
    else if (!write_selected_object(report))
        return "no object that is reachable has this address";
    return NULL;
}

/* ---- */

static void write_head(struct report *report, const struct culet_report_facts *facts)
{
    const struct culet_analysis *analysis = report->analysis;

    culet_buffer_format(report->out, "{\"version\":1,\"pid\":%ld,\"ruby\":", facts->pid);
    if (facts->ruby != NULL)
        culet_buffer_json_string(report->out, facts->ruby, strlen(facts->ruby));
    else
        culet_buffer_text(report->out, "null");
    culet_buffer_format(report->out, ",\"source\":\"%s\",\"fork_seconds\":%.6f", facts->source, facts->fork_seconds);
    culet_buffer_format(report->out, ",\"peak_bytes\":%zu,\"objects\":%" PRIu64 ",\"slot_bytes\":%" PRIu64,
                        analysis->memory->peak_bytes, analysis->objects, analysis->slot_bytes);
    culet_buffer_format(report->out, ",\"malloc_bytes\":%" PRIu64 ",\"total_bytes\":%" PRIu64, analysis->beyond_bytes,
                        analysis->slot_bytes + analysis->beyond_bytes);
    culet_buffer_format(report->out, ",\"unreachable_objects\":%" PRIu64 ",\"unreachable_bytes\":%" PRIu64,
                        analysis->unreachable_objects, analysis->unreachable_bytes);
    if (facts->malloc_in_use != NULL)
        culet_buffer_format(report->out, ",\"malloc_in_use_bytes\":%" PRIu64 ",\"native_bytes\":%" PRId64,
                            *facts->malloc_in_use, (int64_t)(*facts->malloc_in_use - analysis->objects_block_bytes));
    else
        culet_buffer_text(report->out, ",\"malloc_in_use_bytes\":null,\"native_bytes\":null");
}

const char *culet_report_write(struct culet_analysis *analysis, const struct culet_retain_options *options,
                               const struct culet_report_facts *facts, struct culet_buffer *out)
{
    struct report report = {.analysis = analysis, .options = options, .out = out};
    const char *problem = NULL;

    choose(&report);
    sort_pairs(&report);
    if (!culet_memory_exhausted(analysis->memory)) {
        write_head(&report, facts);
        write_holders(&report);
        write_sets(&report);
        culet_tree_write(analysis, &report.shown, out);
        problem = write_selected(&report);
        if (facts->sampled != NULL)
            culet_sampled_write(analysis, facts->sampled, &report.shown, out);
        if (options->duplicates)
            culet_duplicates_write(analysis, &report.shown, out);
        write_classes(&report);
        culet_buffer_format(out, ",\"cpu_seconds\":%.6f}",
                            culet_clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - facts->cpu_start);
    }
    if (culet_memory_exhausted(analysis->memory) || out->failed)
        return culet_memory_problem(analysis->memory);
    return problem;
}
