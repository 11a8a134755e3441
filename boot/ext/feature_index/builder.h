/* feature_index/builder.h - builds an index in memory. Its arrays double when they are full, so that adding a path
 * costs no allocation of its own. */
#pragma once

#include "feature_index/serialized.h"

struct culet_builder;

/* Returns NULL without memory. */
struct culet_builder *culet_builder_new(void);
void culet_builder_free(struct culet_builder *builder);

/* Starts a root, to which the next paths are added. A path has at most 65,534 bytes.
 *
 * Returns its number, or CULET_INDEX_NONE. */
uint32_t culet_builder_root(struct culet_builder *builder, const char *path, size_t length,
                            const struct culet_stamp *stamp, int unreadable);

/* Adds a file or folder of a root.
 *
 * path, length: starts with the root's path
 * stamp:        of a folder, else NULL
 *
 * Returns 1, or 0 without memory or space. */
int culet_builder_add(struct culet_builder *builder, uint32_t root, const char *path, size_t length,
                      enum culet_node_kind kind, const struct culet_stamp *stamp);

/* Copies a root and its contents from another index. Returns 1 or 0. */
int culet_builder_copy(struct culet_builder *builder, const struct culet_index *index, uint32_t root);

/* Removes the root that was started last, and its contents. */
void culet_builder_withdraw(struct culet_builder *builder, uint32_t root);

/* The number of the root with a path, or CULET_INDEX_NONE. */
uint32_t culet_builder_find_root(const struct culet_builder *builder, const char *path, size_t length);

/* Counts so far, of allocations including reallocations. */
uint32_t culet_builder_roots(const struct culet_builder *builder);
uint64_t culet_builder_allocations(const struct culet_builder *builder);
uint64_t culet_builder_bytes(const struct culet_builder *builder);

/* The serialized index, for free(3); NULL without memory or beyond CULET_INDEX_MAX_BYTES. */
void *culet_builder_finish(const struct culet_builder *builder, size_t *bytes);
