/*
 * strings/analysis.h - which strings are the same, and which are the ends of others.
 *
 * Nothing of a string is kept but an entry of 32 bytes (strings/sort.h), which is less than the smallest slot. Equal
 * strings are found by sorting digests, of many strings a part of all digests at a time; ends by sorting what is left by
 * content read backwards, in which a string stands right before those that end with it.
 */
#ifndef CULET_STRINGS_ANALYSIS_H
#define CULET_STRINGS_ANALYSIS_H

#include "strings/digest.h"
#include "strings/record_file.h"
#include "strings/sort.h"
#include "strings/tables.h"
#include "strings/top_groups.h"

/* Where a string's bytes lie; each string is of one of these. */
enum culet_string_place { PLACE_EMBEDDED, PLACE_OWN, PLACE_SHARED, PLACE_NOFREE, PLACES };

struct culet_string_sum {
  uint64_t count;
  uint64_t text_bytes;          /* bytes of text */
  uint64_t slots;          /* bytes of slots */
  uint64_t buffers;        /* bytes of buffers of their own */
  uint64_t slot_slack;     /* bytes of slots that no text fills */
  uint64_t capacity_slack; /* bytes of buffers that no text fills */
};

struct culet_strings_analysis {
  struct culet_record_file file;
  struct culet_strings_secret secret;
  struct culet_string_entry *entries; /* first those that may take part in sharing ends, then those of the part at hand */
  size_t entry_count, entry_bytes;
  size_t lasting; /* how many of the first sort there are */
  size_t with_content;    /* strings whose content is known */
  uint64_t parts, part;
  int out_of_memory;

  struct culet_string_sum places[PLACES];
  struct culet_string_sum interned, frozen, without_content, roots_sum;
  uint64_t smallest_slot;
  uint64_t header; /* bytes of an embedded string's slot before its text */

  uint64_t duplicate_groups, duplicate_copies, duplicate_gain;
  uint64_t suffix_groups, suffix_strings, suffix_gain;
  struct culet_top_groups duplicates, suffixes;
  struct culet_string_sites sites;
  struct culet_string_roots roots;
};

/*
 * Analyses a file of records.
 *
 * top: how many groups of each sort are kept
 * Returns NULL, or a sentence: why it could not be done. To be freed in any case.
 */
const char *culet_strings_analyse(struct culet_strings_analysis *analysis, const char *path, size_t top);

void culet_strings_analysis_free(struct culet_strings_analysis *analysis);

#endif
