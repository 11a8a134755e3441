/* strings/groups.h - what the steps of the analysis share. */
#pragma once

#include "strings/digest.h"
#include "strings/record_file.h"
#include "strings/sort.h"
#include "strings/tables.h"
#include "strings/top_groups.h"

#define STRINGS_NO_MEMORY "not enough memory to analyse this many strings"
#define STRINGS_DAMAGED "the temporary file of strings is damaged"

/* The place of a string's bytes. */
enum culet_string_place { PLACE_EMBEDDED, PLACE_OWN, PLACE_SHARED, PLACE_NOFREE, PLACES };

struct culet_string_sum {
    uint64_t count;
    uint64_t text_bytes;     /* bytes of text */
    uint64_t slots;          /* bytes of slots */
    uint64_t buffers;        /* bytes of own buffers */
    uint64_t slot_slack;     /* unused bytes of slots */
    uint64_t capacity_slack; /* unused bytes of buffers */
};

struct culet_strings_analysis {
    struct culet_record_file file;
    struct culet_strings_secret secret;
    struct culet_string_entry *entries; /* candidates for shared suffixes, then the entries of the current part */
    size_t entry_count, entry_bytes;
    size_t lasting;      /* number of candidates */
    size_t with_content; /* strings with known content */
    uint64_t parts, part;
    int out_of_memory;

    struct culet_string_sum places[PLACES];
    struct culet_string_sum interned, frozen, without_content, roots_sum;
    uint64_t smallest_slot;
    uint64_t header; /* bytes before the text in an embedded string's slot */

    uint64_t duplicate_groups, duplicate_copies, duplicate_gain;
    uint64_t suffix_groups, suffix_strings, suffix_gain;
    struct culet_top_groups duplicates, suffixes;
    struct culet_string_table sites, roots;
};

/* Bytes of a string's slot and buffer. */
static inline uint64_t culet_string_held(const struct culet_string_entry *entry)
{
    return (uint64_t)entry->held_high << 32 | entry->held_low;
}
