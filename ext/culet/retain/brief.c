#include "retain/brief.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "reading/clock.h"
#include "retain/ranking.h"

#define NAMED 1000 /* holders and sets, the largest, whose names are looked at */
#define LISTED 5
#define NAME_BYTES 96
#define PLACE_BYTES 72

/* Holders that have kind, name and place in common. */
struct entry {
    struct culet_brief_holder holder;
    int64_t growth;
    const char *kind;
    char name[NAME_BYTES], place[PLACE_BYTES];
};

CULET_LIST(entries, struct entry)

static int by_bytes(const void *one, const void *other)
{
    const struct entry *a = one, *b = other;

    return (a->holder.bytes < b->holder.bytes) - (a->holder.bytes > b->holder.bytes);
}

static int by_growth(const void *one, const void *other)
{
    const struct entry *a = one, *b = other;

    return (a->growth < b->growth) - (a->growth > b->growth);
}

/* ---- names ---- */

/* FNV-1a. Numbers count as one digit: names of classes that a program makes differ by them. */
static uint64_t hash(uint64_t sum, const char *text)
{
    for (; *text != '\0'; text++) {
        bool digit = *text >= '0' && *text <= '9';
        if (!digit || text[1] < '0' || text[1] > '9')
            sum = (sum ^ (digit ? '0' : (unsigned char)*text)) * UINT64_C(0x100000001b3);
    }
    return sum;
}

static void copy_text(char *to, size_t size, const struct culet_buffer *text)
{
    snprintf(to, size, "%.*s", (int)text->length, text->bytes != NULL ? text->bytes : "");
    for (char *byte = to; *byte != '\0'; byte++)
        if ((unsigned char)*byte < ' ')
            *byte = ' ';
}

/* The end of a path says more than its beginning. */
static void write_place(char *place, const struct culet_buffer *file, long line)
{
    size_t most = PLACE_BYTES - 16, skipped = file->length > most ? file->length - most : 0;

    place[0] = '\0';
    if (file->length > 0)
        snprintf(place, PLACE_BYTES, "%.*s:%ld", (int)(file->length - skipped), file->bytes + skipped, line);
}

static void name_holder(struct culet_analysis *analysis, uint32_t number, struct entry *entry)
{
    long line;

    copy_text(entry->name, sizeof(entry->name), culet_analysis_holder_name(analysis, number, &line));
    entry->kind = culet_holder_kind_name(analysis->graph->holders.items[number].kind);
    write_place(entry->place, &analysis->file, line);
}

/* By two of its holders. */
static void name_set(struct culet_analysis *analysis, uint32_t number, struct entry *entry)
{
    const struct culet_holder_set *set = &analysis->sets.sets.items[number];
    struct entry one = {.kind = ""}, other = {.kind = ""};
    int half = NAME_BYTES / 2 - 8;

    entry->kind = "set";
    if (number == CULET_MANY || set->count < 2) {
        snprintf(entry->name, sizeof(entry->name), "many holders");
        return;
    }
    name_holder(analysis, set->holders[0], &one);
    name_holder(analysis, set->holders[1], &other);
    snprintf(entry->name, sizeof(entry->name), "%.*s and %.*s", half, one.name, half, other.name);
}

static struct entry entry_of(struct culet_analysis *analysis, const struct culet_ranked *ranked)
{
    uint32_t holders = (uint32_t)analysis->graph->holders.count;
    struct entry entry = {.holder.bytes = ranked->weight};

    if (ranked->number < holders)
        name_holder(analysis, ranked->number, &entry);
    else
        name_set(analysis, ranked->number - holders, &entry);
    entry.holder.key = hash(hash(hash(UINT64_C(0xcbf29ce484222325), entry.kind), entry.name), entry.place);
    return entry;
}

/* ---- sums ---- */

static void add_entry(struct culet_memory *memory, struct entries *entries, const struct entry *entry)
{
    for (size_t i = 0; i < entries->count; i++)
        if (entries->items[i].holder.key == entry->holder.key) {
            entries->items[i].holder.bytes += entry->holder.bytes;
            return;
        }
    (void)entries_add(memory, entries, *entry);
}

static void list_largest(struct culet_analysis *analysis, struct entries *entries)
{
    struct culet_ranking ranking = {NULL, 0, {NULL, 0}};

    (void)culet_ranking_of_groups(analysis, 0, (uint32_t)analysis->of_group.count, &ranking);
    for (size_t i = 0; i < ranking.count && i < NAMED && !culet_memory_exhausted(analysis->memory); i++) {
        struct entry entry = entry_of(analysis, &ranking.items[i]);
        add_entry(analysis->memory, entries, &entry);
    }
    culet_ranking_free(analysis->memory, &ranking);
    entries_sort(entries, by_bytes);
}

/* One that was not listed had no more than the smallest of those that were. */
static void set_growth(struct entry *entry, const struct culet_brief *earlier)
{
    uint64_t before = earlier->count == CULET_BRIEF_HOLDERS ? earlier->holders[earlier->count - 1].bytes : 0;

    before = before < entry->holder.bytes ? before : entry->holder.bytes;
    for (uint32_t i = 0; i < earlier->count; i++)
        if (earlier->holders[i].key == entry->holder.key)
            before = earlier->holders[i].bytes;
    entry->growth = (int64_t)(entry->holder.bytes - before);
}

/* ---- text ---- */

/* Adds a line if there is room. */
static void add_line(struct culet_brief *brief, const char *line, int length)
{
    if (length <= 0 || (size_t)length > sizeof(brief->text) - brief->length)
        return;
    memcpy(brief->text + brief->length, line, (size_t)length);
    brief->length += (uint32_t)length;
}

static void write_head(struct culet_brief *brief, const struct culet_brief *earlier)
{
    char line[96];

    if (earlier->count > 0)
        add_line(brief, line,
                 snprintf(line, sizeof(line), "look %" PRIu64 " %" PRIu64 " %" PRId64 "\n",
                          (uint64_t)(brief->at - earlier->at), brief->total_bytes,
                          (int64_t)(brief->total_bytes - earlier->total_bytes)));
    else
        add_line(brief, line, snprintf(line, sizeof(line), "look - %" PRIu64 " -\n", brief->total_bytes));
}

static void write_entry(struct culet_brief *brief, const struct entry *entry, bool compared)
{
    char line[NAME_BYTES + PLACE_BYTES + 96], growth[24] = "-";

    if (compared)
        snprintf(growth, sizeof(growth), "%" PRId64, entry->growth);
    add_line(brief, line,
             snprintf(line, sizeof(line), "%s %" PRIu64 " %s %s\t%s\n", entry->kind, entry->holder.bytes, growth,
                      entry->name, entry->place));
}

void culet_brief_make(struct culet_analysis *analysis, const struct culet_brief *earlier, struct culet_brief *brief)
{
    struct entries entries = {NULL, 0, {NULL, 0}};

    memset(brief, 0, sizeof(*brief));
    brief->at = culet_clock_seconds(CLOCK_MONOTONIC);
    brief->total_bytes = analysis->slot_bytes + analysis->beyond_bytes;
    list_largest(analysis, &entries);
    for (; brief->count < entries.count && brief->count < CULET_BRIEF_HOLDERS; brief->count++)
        brief->holders[brief->count] = entries.items[brief->count].holder;
    write_head(brief, earlier);
    for (size_t i = 0; i < entries.count && earlier->count > 0; i++)
        set_growth(&entries.items[i], earlier);
    if (earlier->count > 0)
        entries_sort(&entries, by_growth);
    for (size_t i = 0; i < entries.count && i < LISTED; i++)
        write_entry(brief, &entries.items[i], earlier->count > 0);
}
