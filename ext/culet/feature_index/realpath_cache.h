/*
 * feature_index/realpath_cache.h - paths that are their own real paths.
 *
 * Ruby asks realpath(3) for each feature it loads and for each folder of the load path, and that reads a link for each
 * part of a path. A folder that is known to have no link on its way needs none of them.
 */
#ifndef CULET_FEATURE_INDEX_REALPATH_CACHE_H
#define CULET_FEATURE_INDEX_REALPATH_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* For how long a folder that has been looked at counts as unchanged, in milliseconds. */
#define CULET_FRESH_MILLISECONDS 50

/* Milliseconds on a clock that is cheap to ask and goes on by itself; never 0. */
uint32_t culet_coarse_milliseconds(void);

/*
 * Whether a folder is there and no part of its path is a link, as seen at most CULET_FRESH_MILLISECONDS ago. A path that
 * is not written as realpath would write it (absolute, no "//", "/./", "/../", no slash at the end) never is.
 */
int culet_realpath_is_folder(const char *path, size_t length);

/* Likewise for a file of any kind; sets what lstat(2) told of it now. */
int culet_realpath_is_file(const char *path, struct stat *status);

/* Whether a path leads nowhere: a folder on the way has no link in its own path, and no entry of the next part's name. */
int culet_realpath_is_absent(const char *path);

#endif
