/* retain/tree.h - the tree of dominators below the holders and sets that are shown. */
#pragma once

#include "retain/analysis.h"

/* Writes `,"tree":[...]`: the holders with their numbers in the list as ids, the sets behind them, then objects. */
void culet_tree_write(struct culet_analysis *analysis, const struct culet_shown *shown, struct culet_buffer *out);
