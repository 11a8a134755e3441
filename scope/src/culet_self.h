/* culet_self.h - the record that libculet.so holds about itself (allocator/src/selfmap.h), found in another process,
 * and checked: what is read from a process is data, and may be anything. */
#ifndef CULET_CULET_SELF_H
#define CULET_CULET_SELF_H

#include "../../allocator/src/selfmap.h"
#include "scope.h"

/* The shape of a size class's slabs. */
struct culet_shape {
    uint32_t size; /* bytes of a block; 0: no such class */
    uint32_t blocks;
    uint32_t unit_shift; /* log2 of the blocks of a unit */
    uint32_t granules;
};

/* The library in the process: a mapping of its file, or NULL. */
const struct culet_mapping *culet_self_library(const struct culet_maps *maps);

/* Finds the record in the library's mappings. False where there is none, or none that can be understood: *why is a
 * sentence then. Only while the process is paused, or cannot change it: it is constant. */
bool culet_self_find(struct culet_scope *scope, struct culet_selfmap *self, const char **why);

/* Reads the shapes of all size classes into `shapes`, of self->class_entries. False when they make no sense, as before
 * the library has begun. */
bool culet_self_shapes(struct culet_scope *scope, const struct culet_selfmap *self, struct culet_shape *shapes);

#endif
