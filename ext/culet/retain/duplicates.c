#include "retain/duplicates.h"

#include <inttypes.h>
#include <string.h>

#define MOST_ROWS 200
#define MOST_GROUPS 4 /* of a row */
#define SHOWN_BYTES 200
#define CLOCK_EVERY 0xffff

/* Strings with equal contents. */
struct equal {
    uint64_t hash;
    uint64_t copies, bytes;
    uint32_t first; /* id of one of them */
    uint32_t groups[MOST_GROUPS];
    uint32_t group_count;
};

CULET_LIST(equals, struct equal)

struct search {
    struct culet_analysis *analysis;
    struct equals equals;
    struct culet_numbers table; /* hash table: index + 1 */
};

static uint64_t hash_of(const char *bytes, size_t length)
{
    uint64_t hash = length * UINT64_C(0x9e3779b97f4a7c15), word = 0;

    for (; length >= sizeof(word); bytes += sizeof(word), length -= sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, bytes, length);
    hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 29;
}

static bool has_content(const struct search *search, uint32_t id, const char *bytes, size_t length)
{
    struct culet_graph *graph = search->analysis->graph;
    size_t other_length;
    const char *other = graph->functions->content(graph, id, &other_length);

    return other != NULL && other_length == length && memcmp(other, bytes, length) == 0;
}

static uint32_t hash_of_equal(const void *equals, uint32_t number)
{
    return (uint32_t)((const struct equals *)equals)->items[number - 1].hash;
}

static struct equal *equal_of(struct search *search, uint32_t id, const char *bytes, size_t length)
{
    struct culet_memory *memory = search->analysis->memory;
    uint64_t hash = hash_of(bytes, length);
    uint32_t mask, at, found;

    if (!culet_table_reserve(memory, &search->table, 1, search->equals.count + 1, hash_of_equal, &search->equals))
        return NULL;
    mask = (uint32_t)search->table.count - 1;
    for (at = (uint32_t)hash & mask; (found = search->table.items[at]) != 0; at = (at + 1) & mask) {
        struct equal *equal = &search->equals.items[found - 1];
        if (equal->hash == hash && has_content(search, equal->first, bytes, length))
            return equal;
    }
    if (!equals_add(memory, &search->equals, (struct equal){.hash = hash, .first = id}))
        return NULL;
    search->table.items[at] = (uint32_t)search->equals.count;
    return &search->equals.items[search->equals.count - 1];
}

static void add_string(struct search *search, uint32_t id)
{
    struct culet_graph *graph = search->analysis->graph;
    size_t length;
    const char *bytes = graph->functions->content(graph, id, &length);
    struct equal *equal;
    uint32_t group, i;

    if (bytes == NULL || length == 0)
        return;
    if (graph->functions->shares_content != NULL && graph->functions->shares_content(graph, id))
        return; /* no copy */
    if ((equal = equal_of(search, id, bytes, length)) == NULL)
        return;
    equal->copies++;
    equal->bytes += culet_graph_bytes(graph, id);
    group = culet_analysis_group(search->analysis, id);
    for (i = 0; i < equal->group_count && equal->groups[i] != group; i++)
        continue;
    if (i == equal->group_count && i < MOST_GROUPS)
        equal->groups[equal->group_count++] = group;
}

static int by_bytes(const void *one, const void *other)
{
    const struct equal *a = one, *b = other;
    int a_several = a->copies > 1, b_several = b->copies > 1;

    if (a_several != b_several)
        return a_several ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return (a->hash > b->hash) - (a->hash < b->hash);
}

static void write_row(const struct search *search, const struct equal *equal, const struct culet_shown *shown,
                      struct culet_buffer *out)
{
    struct culet_graph *graph = search->analysis->graph;
    size_t length = 0;
    const char *bytes = graph->functions->content(graph, equal->first, &length);

    culet_buffer_format(out, "{\"length\":%zu,\"copies\":%" PRIu64 ",\"bytes\":%" PRIu64 ",", length, equal->copies,
                        equal->bytes);
    culet_analysis_write_groups(search->analysis, shown, equal->groups, equal->group_count, out);
    culet_buffer_text(out, ",\"content\":");
    if (graph->show_contents)
        culet_buffer_json_string(out, bytes, length < SHOWN_BYTES ? length : SHOWN_BYTES);
    else
        culet_buffer_text(out, "null");
    culet_buffer_text(out, "}");
}

void culet_duplicates_write(struct culet_analysis *analysis, const struct culet_shown *shown, struct culet_buffer *out)
{
    struct search search = {.analysis = analysis};

    for (uint32_t id = 0; id < analysis->graph->ids; id++) {
        if (analysis->walk.entries.items[id] != 0)
            add_string(&search, id);
        if ((id & CLOCK_EVERY) == 0 && culet_memory_exhausted(analysis->memory))
            break;
    }
    equals_sort(&search.equals, by_bytes);
    culet_buffer_text(out, ",\"duplicates\":[");
    for (size_t i = 0; i < search.equals.count && i < MOST_ROWS && search.equals.items[i].copies > 1; i++) {
        culet_buffer_comma(out);
        write_row(&search, &search.equals.items[i], shown, out);
    }
    culet_buffer_text(out, "]");
    equals_free(analysis->memory, &search.equals);
    culet_numbers_free(analysis->memory, &search.table);
}
