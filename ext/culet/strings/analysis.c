#include "strings/analysis.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "strings/duplicates.h"
#include "strings/suffixes.h"

/* The smallest slot of every Ruby. Before the text an embedded string has 16 bytes up to Ruby 3.1, later 24. */
#define SMALLEST_SLOT 40
#define HEADER 16
#define LATER_HEADER 24
#define KIND_MIX 0x9e3779b97f4a7c15U
/* Strings per pass for duplicates. More passes cost more time than the memory that they save. */
#define PART_STRINGS 200000
#define MAX_PARTS 8

typedef void each_record(struct culet_strings_analysis *analysis, const struct culet_string_record *record,
                         uint64_t offset);

/* Calls a function with each string of the file. Returns NULL or an error message. */
static const char *each_string(struct culet_strings_analysis *analysis, each_record *function)
{
    struct culet_record_file *file = &analysis->file;
    const struct culet_string_record *record;
    uint64_t offset = 0;

    for (; offset < file->size; offset += record->bytes) {
        record = culet_record_file_record(file, offset);
        if (record == NULL)
            return STRINGS_DAMAGED;
        if ((record->flags & STRING_SITE) == 0)
            function(analysis, record, offset);
        culet_record_file_passed(file, record);
    }
    return analysis->out_of_memory ? STRINGS_NO_MEMORY : NULL;
}

/* Counts a string by a site or root, which may be 0: none. Returns the entry, or NULL. */
static struct culet_string_counts *count_by(struct culet_strings_analysis *analysis, struct culet_string_table *table,
                                            uint64_t key)
{
    struct culet_string_counts *place = key != 0 ? culet_string_table_at(table, key) : NULL;

    if (place != NULL)
        place->strings++;
    else if (key != 0)
        analysis->out_of_memory = 1;
    return place;
}

/* ---- first pass: counts, roots ---- */

static void count_string(struct culet_strings_analysis *analysis, const struct culet_string_record *record,
                         uint64_t offset)
{
    analysis->with_content += (record->flags & STRING_HAS_CONTENT) != 0;
    if (record->slot < analysis->smallest_slot)
        analysis->smallest_slot = record->slot;
    /* A slot of 40 bytes holds 23 bytes of text if the length is in the flags (up to Ruby 3.1), else 15. */
    if ((record->flags & STRING_EMBEDDED) && record->slot == SMALLEST_SLOT &&
        record->length >= SMALLEST_SLOT - LATER_HEADER)
        analysis->header = HEADER;
    (void)count_by(analysis, &analysis->roots, record->root);
}

/* ---- second pass: sums; further passes: entries ---- */

static enum culet_string_place place_of(const struct culet_string_record *record)
{
    if (record->flags & STRING_EMBEDDED)
        return PLACE_EMBEDDED;
    if (record->flags & STRING_SHARED)
        return PLACE_SHARED;
    return record->flags & STRING_NOFREE ? PLACE_NOFREE : PLACE_OWN;
}

static void add_to(const struct culet_strings_analysis *analysis, struct culet_string_sum *sum,
                   const struct culet_string_record *record)
{
    uint64_t used = analysis->header + record->length + 1, buffer = record->held - record->slot;

    sum->count++;
    sum->text_bytes += record->flags & STRING_LENGTH_UNKNOWN ? 0 : record->length;
    sum->slots += record->slot;
    sum->buffers += buffer;
    if (record->flags & STRING_EMBEDDED)
        sum->slot_slack += record->slot > used ? record->slot - used : 0;
    else
        sum->capacity_slack += buffer > record->length + 1 ? buffer - record->length - 1 : 0;
}

static uint64_t key_of(const struct culet_strings_analysis *analysis, const struct culet_string_record *record)
{
    size_t length = record->flags & STRING_DIGEST ? STRINGS_DIGEST_BYTES : record->content_bytes;
    uint64_t digest[2];

    culet_strings_digest(&analysis->secret, culet_strings_content(record), length, digest);
    return digest[0] ^ (record->kind + record->length) * KIND_MIX;
}

static struct culet_string_entry entry_of(const struct culet_string_record *record, uint64_t key, uint64_t offset,
                                          uint32_t more_flags)
{
    uint64_t held = record->held < STRINGS_MAX_HELD ? record->held : STRINGS_MAX_HELD;

    return (struct culet_string_entry){.key = key,
                                       .offset = offset,
                                       .flags = (record->flags | more_flags) & 0xffff,
                                       .site = record->site,
                                       .length = record->length < UINT32_MAX ? (uint32_t)record->length : UINT32_MAX,
                                       .held_high = held >> 32,
                                       .held_low = (uint32_t)held};
}

static void sum_string(struct culet_strings_analysis *analysis, const struct culet_string_record *record,
                       uint64_t offset)
{
    struct culet_string_counts *root = culet_string_table_find(&analysis->roots, record->address);
    struct culet_string_counts *site = count_by(analysis, &analysis->sites, record->site);

    if (site != NULL)
        site->held += record->held;
    if (root != NULL) {
        root->record = offset + 1;
        add_to(analysis, &analysis->roots_sum, record);
    }
    add_to(analysis, &analysis->places[place_of(record)], record);
    if (record->flags & STRING_INTERNED)
        add_to(analysis, &analysis->interned, record);
    if (record->flags & STRING_FROZEN)
        add_to(analysis, &analysis->frozen, record);
    if (!(record->flags & STRING_HAS_CONTENT))
        add_to(analysis, &analysis->without_content, record);
}

/* Adds an entry for a string of the current part. */
static void add_entry(struct culet_strings_analysis *analysis, const struct culet_string_record *record,
                      uint64_t offset)
{
    uint64_t key;
    uint32_t more;

    if (!(record->flags & STRING_HAS_CONTENT))
        return;
    key = key_of(analysis, record);
    if (key % analysis->parts != analysis->part)
        return;
    more = culet_string_table_find(&analysis->roots, record->address) != NULL ? STRING_ROOT : 0;
    analysis->entries[analysis->entry_count++] = entry_of(record, key, offset, more);
}

/* ---- analysis ---- */

static int reserve(struct culet_strings_analysis *analysis, size_t top)
{
    /* Sized for all strings, because one part may have them all; untouched pages use no memory. */
    size_t bytes = (analysis->with_content + 1) * sizeof(*analysis->entries);
    void *entries = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (entries == MAP_FAILED)
        return 0;
    analysis->entries = entries;
    analysis->entry_bytes = bytes;
    analysis->parts = analysis->with_content / PART_STRINGS + 1;
    if (analysis->parts > MAX_PARTS)
        analysis->parts = MAX_PARTS;
    return culet_top_groups_prepare(&analysis->duplicates, top) && culet_top_groups_prepare(&analysis->suffixes, top);
}

const char *culet_strings_analyse(struct culet_strings_analysis *analysis, const char *path, size_t top)
{
    const char *failure;
    int error;

    memset(analysis, 0, sizeof(*analysis));
    analysis->smallest_slot = SMALLEST_SLOT;
    analysis->header = LATER_HEADER;
    if ((error = culet_strings_secret_make(&analysis->secret)) != 0)
        return strerror(error);
    if ((error = culet_record_file_open(&analysis->file, path)) != 0)
        return strerror(error);
    if (analysis->file.size >= STRINGS_MAX_FILE)
        return "the strings exceed one terabyte";
    if ((failure = each_string(analysis, count_string)) != NULL)
        return failure;
    if (!reserve(analysis, top))
        return STRINGS_NO_MEMORY;
    if ((failure = each_string(analysis, sum_string)) != NULL)
        return failure;
    for (; analysis->part < analysis->parts; analysis->part++) {
        if ((failure = each_string(analysis, add_entry)) != NULL)
            return failure;
        if (!culet_strings_group_duplicates(analysis))
            return STRINGS_NO_MEMORY;
    }
    if ((failure = culet_strings_group_suffixes(analysis)) != NULL)
        return failure;
    culet_top_groups_sort(&analysis->duplicates);
    culet_top_groups_sort(&analysis->suffixes);
    return NULL;
}

void culet_strings_analysis_free(struct culet_strings_analysis *analysis)
{
    culet_record_file_close(&analysis->file);
    if (analysis->entries != NULL)
        munmap(analysis->entries, analysis->entry_bytes);
    free(analysis->duplicates.groups);
    free(analysis->suffixes.groups);
    culet_string_table_free(&analysis->sites);
    culet_string_table_free(&analysis->roots);
}
