/*
 * requires/tags.h - which feature each Ruby object was made under: a number for each slot of Ruby's heap, in memory of
 * the kernel's own. A slot that is used again is tagged again, so frees need not be followed.
 */
#ifndef CULET_REQUIRES_TAGS_H
#define CULET_REQUIRES_TAGS_H

#include <ruby.h>

#include <stdint.h>

/* Sets the tag of the object at this address. Without memory the tag is lost, and culet_tags_lost tells. */
void culet_tags_set(VALUE object, uint32_t tag);

/* The tag of the object at this address; 0 where it has none. */
uint32_t culet_tags_get(VALUE object);

/* How many tags could not be kept. */
size_t culet_tags_lost(void);

#endif
