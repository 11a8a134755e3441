/* recorder/tags.h - under which require each Ruby object was allocated: a number per slot of Ruby's heap, in mappings
 * of its own. A reused slot is tagged again, so frees need not be followed. */
#pragma once

#include <ruby.h>

#include <stdint.h>

/* Tags the object at an address. Without memory the tag is lost and counted by culet_tags_lost. */
void culet_tags_set(VALUE object, uint32_t tag);

/* The tag of the object at an address; 0: none. */
uint32_t culet_tags_get(VALUE object);

/* How many tags were lost. */
size_t culet_tags_lost(void);
