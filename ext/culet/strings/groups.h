/* strings/groups.h - the two steps of an analysis that find groups. */
#ifndef CULET_STRINGS_GROUPS_H
#define CULET_STRINGS_GROUPS_H

#include "strings/analysis.h"

/* The bytes a string holds. */
static inline uint64_t
culet_string_held(const struct culet_string_entry *entry)
{
  return (uint64_t)entry->held_high << 32 | entry->held_low;
}

/* Adds what would go away to its site. Returns whether there was memory. */
int culet_string_gain_at_site(struct culet_strings_analysis *analysis, uint64_t site, uint64_t gain);

/*
 * Finds equal strings among the entries of the part at hand; of each content the one that stays becomes a lasting entry, if
 * it may take part in sharing ends. Returns whether there was memory.
 */
int culet_strings_group_duplicates(struct culet_strings_analysis *analysis);

/* Strings are sorted by so many of their last bytes first. */
#define STRINGS_KEY_BYTES 8

/* Whether a string may lie in another's buffer, or another in its: it does not fit into the smallest slot. */
static inline int
culet_string_may_share_end(const struct culet_strings_analysis *analysis, const struct culet_string_entry *entry)
{
  uint64_t fits = analysis->smallest_slot > analysis->header + 1 ? analysis->smallest_slot - analysis->header - 1 : 0;

  return entry->length > fits && entry->length >= STRINGS_KEY_BYTES && (entry->flags & STRING_DIGEST) == 0;
}

/* Among the lasting entries finds the ones that others end with; they are used up. Returns whether there was memory. */
int culet_strings_group_suffixes(struct culet_strings_analysis *analysis);

#endif
