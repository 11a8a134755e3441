/* strings/groups.h - the two steps of the analysis that find groups. */
#ifndef CULET_STRINGS_GROUPS_H
#define CULET_STRINGS_GROUPS_H

#include "strings/analysis.h"

/* Bytes of a string's slot and buffer. */
static inline uint64_t culet_string_held(const struct culet_string_entry *entry)
{
    return (uint64_t)entry->held_high << 32 | entry->held_low;
}

/* Adds a gain to its allocation site. Returns 0 without memory. */
int culet_string_gain_at_site(struct culet_strings_analysis *analysis, uint64_t site, uint64_t gain);

/*
 * Groups the duplicates of the current part. The string that stays becomes a candidate for a shared suffix. Returns 0
 * without memory.
 */
int culet_strings_group_duplicates(struct culet_strings_analysis *analysis);

/* Strings are first sorted by this many of their last bytes. */
#define STRINGS_KEY_BYTES 8

/* Whether the string is too large for the smallest slot, so that it can share a buffer. */
static inline int culet_string_may_share_end(const struct culet_strings_analysis *analysis,
                                             const struct culet_string_entry *entry)
{
    uint64_t fits = analysis->smallest_slot > analysis->header + 1 ? analysis->smallest_slot - analysis->header - 1 : 0;

    return entry->length > fits && entry->length >= STRINGS_KEY_BYTES && (entry->flags & STRING_DIGEST) == 0;
}

/* Groups the candidates that are suffixes of others, and uses them up. Returns 0 without memory. */
int culet_strings_group_suffixes(struct culet_strings_analysis *analysis);

#endif
