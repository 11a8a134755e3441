/* strings/suffixes.h - finds strings that others end with. */
#pragma once

#include "strings/groups.h"

/* Strings are first sorted by this many of their last bytes. */
#define STRINGS_KEY_BYTES 8

/* Whether the string is too large for the smallest slot, so that it can share a buffer. */
static inline int culet_string_may_share_end(const struct culet_strings_analysis *analysis,
                                             const struct culet_string_entry *entry)
{
    uint64_t fits = analysis->smallest_slot > analysis->header + 1 ? analysis->smallest_slot - analysis->header - 1 : 0;

    return entry->length > fits && entry->length >= STRINGS_KEY_BYTES && (entry->flags & STRING_DIGEST) == 0;
}

/* Groups the candidates that are suffixes of others, and uses them up. Returns NULL or an error message. */
const char *culet_strings_group_suffixes(struct culet_strings_analysis *analysis);
