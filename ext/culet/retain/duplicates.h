/* retain/duplicates.h - equal strings, and who keeps them. */
#pragma once

#include "retain/analysis.h"
#include "retain/options.h"

/* Writes `,"duplicates":[...]`: strings of which there are several copies, those with the most bytes first.
 *
 * ids: by group, its place in the lists of holders and sets + 1 */
void culet_duplicates_write(struct culet_analysis *analysis, const struct culet_retain_options *options,
                            const struct culet_numbers *ids, struct culet_buffer *out);
