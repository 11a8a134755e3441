/* culet_selfmap.h - finds the record that libculet.so holds of itself (allocator/src/selfmap.h) in another process, and
 * checks it: what a process holds may be anything. */
#pragma once

#include "allocator/src/selfmap.h"
#include "reading.h"

/* The slabs of a size class. */
struct culet_shape {
    uint32_t size; /* bytes of a block; 0: no such class */
    uint32_t blocks;
    uint32_t pages; /* of the selfmap's page_bytes */
};

/* A mapping of the library's file, or NULL. */
const struct culet_mapping *culet_selfmap_library(const struct culet_maps *maps);

/* Finds the record in the library's mappings. If there is none, or none that can be read, returns false, and a
 * sentence in *why. Needs no pause once the library is loaded: the record is constant. */
bool culet_selfmap_find(struct culet_reading *reading, struct culet_selfmap *self, const char **why);

/* Reads the shapes of all size classes into `shapes`, of self->class_entries. Returns false if they are not valid,
 * as before the first allocation. */
bool culet_selfmap_shapes(struct culet_reading *reading, const struct culet_selfmap *self, struct culet_shape *shapes);
