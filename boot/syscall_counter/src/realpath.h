/* realpath.h - the system calls inside realpath, which cannot be intercepted. */
#pragma once

#include <stdbool.h>

/* Counts the calls of a realpath: one per component, including those of link targets.
 *
 * resolved: its result, or NULL on an error */
void culet_count_realpath(const char *path, const char *resolved);
