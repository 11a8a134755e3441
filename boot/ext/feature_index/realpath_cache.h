/* feature_index/realpath_cache.h - paths that are known to be real paths.
 *
 * Ruby calls realpath(3) for each feature that it loads and for each folder of the load path, which costs a readlink(2)
 * for each part of the path. A folder without links on its path needs none. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* How long a checked folder counts as unchanged. */
#define CULET_FRESH_MILLISECONDS 50

/* Milliseconds of a cheap monotonic clock; never 0. */
uint32_t culet_coarse_milliseconds(void);

/* Whether a path is that of a folder and has no links in it, checked at most CULET_FRESH_MILLISECONDS ago. False for a
 * path that realpath would write differently (relative, with "//", "/./", "/../" or a slash at the end). */
int culet_realpath_is_folder(const char *path, size_t length);

/* Whether a path is that of a file of any type and has no links in it: that of its folder is checked at most
 * CULET_FRESH_MILLISECONDS ago. Sets the result of lstat(2), which is called each time. */
int culet_realpath_is_file(const char *path, struct stat *status);

/* Whether nothing has this path: the longest prefix that is a folder has no links and no entry with the next name. */
int culet_realpath_is_absent(const char *path);
