/* common/heap_walk.h - a walk over all slots of Ruby's heap with GC disabled, as in ObjectSpace. */
#pragma once

#include <ruby.h>

#include <stddef.h>

/* The flag of a string or array that uses another one's buffer; 0 where Ruby's headers do not define it. */
#ifdef HAVE_CONST_RUBY_ELTS_SHARED
#define CULET_ELEMENTS_SHARED ((VALUE)RUBY_ELTS_SHARED)
#else
#define CULET_ELEMENTS_SHARED ((VALUE)0)
#endif

/* Called for one run of slots. Returns whether to end the walk. May raise. */
typedef int culet_heap_walk_function(void *start, void *past, size_t slot_bytes, void *data);

/* Functions of Ruby that are not in its headers; NULL where this Ruby has none. */
typedef size_t culet_heap_memsize_function(VALUE object);
culet_heap_memsize_function *culet_heap_memsize(void);   /* rb_obj_memsize_of: bytes of an object, including its slot */
culet_heap_memsize_function *culet_heap_slot_size(void); /* rb_gc_obj_slot_size: the part of these that is the slot */

/* Whether rb_obj_memsize_of may be called for an object, and tells its size: it ends the process on unknown types. */
int culet_heap_has_size(VALUE object);

/* Whether this Ruby supports the walk. */
int culet_heap_walk_is_possible(void);

/* Why the heap cannot be walked now, or NULL. Requires the GVL. May raise. */
const char *culet_heap_walk_obstacle(void);

/* Walks over the heap, if there is no obstacle. Requires the GVL. rb_gc_disable finishes a sweep in progress, so the
 * walk meets no object whose references are freed.
 *
 * Returns 0, or the state for rb_jump_tag if the function raised. */
int culet_heap_walk(culet_heap_walk_function *function, void *data);

/* Calls a function with GC disabled, for work on the runs that a walk found. Returns as culet_heap_walk. */
int culet_without_gc(void (*function)(void *data), void *data);
