/* agent/classes.h - what Ruby's classes are called, and how an old object is told from a young one by its flags. */
#ifndef CULET_AGENT_CLASSES_H
#define CULET_AGENT_CLASSES_H

#include "common/buffer.h"

/* All zeroes: nobody was looked at. */
struct culet_classes {
  struct culet_buffer names; /* address and name of each, as JSON, with commas between */
  VALUE old_bits;               /* bits that all old objects have of those that can tell their age */
  size_t old_count;             /* how many were old */
  void *gc_flags;          /* Ruby's functions that tell; NULL: it has none of that name, or was not looked for */
  void *metadata;
  int looked_up;
};

/* Looks at one live object. Makes no object, so that it can be called while all are walked through. */
void culet_classes_add(struct culet_classes *classes, VALUE object);

/*
 * Adds one JSON object of kind "classes" and a line's end: old_bits, which together say in the first word of an object
 * that it is old (0: this Ruby does not tell), names: [[address, name], ...] of classes that have one. The names are
 * gone then.
 */
void culet_classes_write(struct culet_buffer *buffer, struct culet_classes *classes);

#endif
