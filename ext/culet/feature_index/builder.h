/*
 * feature_index/builder.h - makes an index in memory. Everything goes into five arrays that double when they are full, so
 * adding a path costs no allocation of its own, however deep it lies, but for now and then a doubling.
 */
#ifndef CULET_FEATURE_INDEX_BUILDER_H
#define CULET_FEATURE_INDEX_BUILDER_H

#include "feature_index/serialized.h"

struct culet_builder;

/* Returns NULL where memory is short; so do the others, or an error. */
struct culet_builder *culet_builder_new(const char *native_extension);
void culet_builder_free(struct culet_builder *builder);

/*
 * Begins a root; what is added next is in it. A path is at most 65,534 bytes long.
 *
 * Returns its number, or CULET_INDEX_NONE.
 */
uint32_t culet_builder_root(struct culet_builder *builder, const char *path, size_t length, const struct culet_stamp *stamp, int unreadable);

/*
 * Adds a file or folder of a root.
 *
 * path, length: its path; begins with that of the root
 * stamp:        of a folder, else NULL
 *
 * Returns 1, or 0 where memory or room is short.
 */
int culet_builder_add(struct culet_builder *builder, uint32_t root, const char *path, size_t length, enum culet_node_kind kind,
                      const struct culet_stamp *stamp);

/* Adds a root with all that it has in another index. Returns 1, or 0. */
int culet_builder_copy(struct culet_builder *builder, const struct culet_index *index, uint32_t root);

/* Takes back the root that was begun last, and what was added to it. */
void culet_builder_withdraw(struct culet_builder *builder, uint32_t root);

/* The number of the root of that path, or CULET_INDEX_NONE. */
uint32_t culet_builder_find_root(const struct culet_builder *builder, const char *path, size_t length);

/* How many of each there are by now, and how often memory was allocated or made larger. */
uint32_t culet_builder_roots(const struct culet_builder *builder);
uint32_t culet_builder_nodes(const struct culet_builder *builder);
uint64_t culet_builder_allocations(const struct culet_builder *builder);
uint64_t culet_builder_bytes(const struct culet_builder *builder);

/* The whole as an image, for free(3); NULL where memory is short or the image would be too large. */
void *culet_builder_finish(const struct culet_builder *builder, size_t *bytes);

#endif
