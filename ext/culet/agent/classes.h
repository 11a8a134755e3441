/* agent/classes.h - the names of Ruby's classes, and the flags that mark old objects. */
#pragma once

#include "common/buffer.h"

/* All zeros: empty. */
struct culet_classes {
    struct culet_buffer names; /* JSON: [address, name] of each class, separated by commas */
    VALUE old_bits;            /* age bits that all old objects have in common */
    size_t old_count;          /* old objects seen */
};

/* Adds the class and the flags of a live object. Allocates no object, so that it can be called during a walk. */
void culet_classes_add(struct culet_classes *classes, VALUE object);

/* Adds a JSON line of kind "classes": old_bits, the bits of an object's first word that together mark it as old (0: not
 * known), and names: [[address, name], ...]. Frees the names. */
void culet_classes_write(struct culet_buffer *buffer, struct culet_classes *classes);
