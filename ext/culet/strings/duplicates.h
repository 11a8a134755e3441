/* strings/duplicates.h - finds strings of equal content. */
#pragma once

#include "strings/groups.h"

/* Groups the duplicates of the current part. The string that stays becomes a candidate for a shared suffix. Returns 0
 * without memory. */
int culet_strings_group_duplicates(struct culet_strings_analysis *analysis);
