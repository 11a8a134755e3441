/* strings/analysis.h - finds duplicate strings, and strings that are suffixes of others.
 *
 * Per string only an entry of 32 bytes is kept (strings/sort.h), less than the smallest slot. Duplicates are found by
 * sorting digests; with many strings, a part of the digests at a time. Suffixes are found by sorting the remaining
 * strings by their reversed content, in which a string directly precedes those that end with it. */
#pragma once

#include "strings/groups.h"

/* Analyses a file of records.
 *
 * top: how many groups of each sort to keep
 * Returns NULL or an error message. Free the analysis in either case. */
const char *culet_strings_analyse(struct culet_strings_analysis *analysis, const char *path, size_t top);

void culet_strings_analysis_free(struct culet_strings_analysis *analysis);
