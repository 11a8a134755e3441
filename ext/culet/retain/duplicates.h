/* retain/duplicates.h - equal strings, and their holders. */
#pragma once

#include "retain/analysis.h"

/* Writes `,"duplicates":[...]`: strings of which there are several copies, those with the most bytes first. */
void culet_duplicates_write(struct culet_analysis *analysis, const struct culet_shown *shown, struct culet_buffer *out);
