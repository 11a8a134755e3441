/* retain/tree.h - the tree of dominators below the holders and sets that are shown. */
#pragma once

#include "retain/analysis.h"

/* Writes `,"tree":[...]`: the holders with their numbers in the list as ids, the sets behind them, then objects.
 *
 * holders, sets: groups that are shown; ids: by group, its place in these lists + 1 */
void culet_tree_write(struct culet_analysis *analysis, const struct culet_numbers *holders,
                      const struct culet_numbers *sets, const struct culet_numbers *ids, struct culet_buffer *out);
