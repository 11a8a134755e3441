/* feature_index/resolver.h - finds features in the load path: from the index where it is up to date, by stat(2) where
 * it is not, and not at all where only Ruby can tell.
 *
 * The index is up to date for a name if each folder that could hold the answer, or an earlier one, is unchanged since
 * it was read. The load path's folders up to the answer, and the subfolders that the name passes through, are checked,
 * unless they were checked in the last CULET_FRESH_MILLISECONDS and `now` is false.
 *
 * Knows no Ruby. Not thread-safe. */
#pragma once

#include <limits.h>
#include <stddef.h>

#include "feature_index/serialized.h"

enum culet_answer {
    CULET_FOUND,
    CULET_NOWHERE, /* no folder of the load path has it */
    CULET_UNSURE   /* Ruby has to search */
};

/* Kinds of files, a bit mask. */
#define CULET_RUBY (1u << CULET_NODE_RUBY)
#define CULET_NATIVE (1u << CULET_NODE_NATIVE)

struct culet_resolver;

/* file: of the index; NULL: in memory. Returns NULL without memory. */
struct culet_resolver *culet_resolver_new(const char *file);

/* name: without extension, see culet_resolver_plain
 * now:  whether to check folders that were checked just now
 * path: set to the file if it is found */
enum culet_answer culet_resolver_find(struct culet_resolver *resolver, const char *name, size_t length, unsigned kinds,
                                      int now, char path[PATH_MAX]);

/* Whether the index can answer for a name: ASCII, no part starts with a dot. */
int culet_resolver_plain(const char *name, size_t length);

/* Which kinds of file the index has for a name, in any folder. */
unsigned culet_resolver_kinds(const struct culet_resolver *resolver, const char *name, size_t length);

/* Why the index could not be written to its file; NULL if it was, or if this was reported already. */
const char *culet_resolver_problem(struct culet_resolver *resolver);
