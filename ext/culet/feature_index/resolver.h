/*
 * feature_index/resolver.h - answers where a load path has a feature: from the index as far as it is sure of it, by asking
 * the folder itself where it is not, and not at all where only Ruby can tell.
 *
 * Sure means: each folder that could hold the answer, or one that comes before it, is as it was when it was read. The
 * load path's folders up to the answer's and those below them that the name leads through are looked at, unless they
 * were CULET_FRESH_MILLISECONDS ago or less; or whenever they were, if the answer is to be of this very moment.
 *
 * Knows no Ruby; to be used by one thread at a time.
 */
#ifndef CULET_FEATURE_INDEX_RESOLVER_H
#define CULET_FEATURE_INDEX_RESOLVER_H

#include "feature_index/serialized.h"

#include <limits.h>

enum culet_answer {
  CULET_FOUND,
  CULET_NOWHERE, /* no folder of the load path has it */
  CULET_UNSURE   /* Ruby has to search */
};

/* Which files count, to be joined by |. */
#define CULET_RUBY (1u << CULET_NODE_RUBY)
#define CULET_NATIVE (1u << CULET_NODE_NATIVE)

/* A folder of the load path as it is written there. */
struct culet_load_path_entry {
  const char *path; /* absolute; NULL: the entry is none that the index knows, and hides what comes behind it */
  size_t length;
};

struct culet_resolver_stats {
  size_t bytes;     /* of the index */
  uint32_t folders; /* of load paths that are in it */
  uint32_t files;   /* with the folders below */
  uint32_t probed;   /* folders of this load path that have to be asked */
  uint32_t builds;  /* how often this process read folders for it */
  int shared;       /* whether it was read from its file */
};

struct culet_resolver;

/*
 * file:    where the index is kept; NULL: in memory
 * native_extension: the extension of native files
 *
 * Returns NULL where memory is short.
 */
struct culet_resolver *culet_resolver_new(const char *file, const char *native_extension);

/* Tells it the load path; reads those folders that the index does not know yet. */
void culet_resolver_set_load_path(struct culet_resolver *resolver, const struct culet_load_path_entry *entries, size_t count);

/*
 * name:  without extension, see culet_resolver_plain
 * now:   whether the answer is to be of this very moment
 * path:  set to the file, if it is found
 */
enum culet_answer culet_resolver_find(struct culet_resolver *resolver, const char *name, size_t length, unsigned kinds, int now, char path[PATH_MAX]);

/* Whether a name is one that the index can answer for: parts that do not begin with a dot, in ASCII. */
int culet_resolver_plain(const char *name, size_t length);

/* Which kinds of file the index has of a name, in whatever folder. */
unsigned culet_resolver_kinds(const struct culet_resolver *resolver, const char *name, size_t length);

/* Why the index is not kept in its file, once; NULL where it is, or where this has been told. */
const char *culet_resolver_problem(struct culet_resolver *resolver);

void culet_resolver_read_stats(const struct culet_resolver *resolver, struct culet_resolver_stats *stats);

#endif
