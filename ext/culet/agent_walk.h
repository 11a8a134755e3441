/* agent_walk.h - all slots of Ruby's heap, with GC off, as ObjectSpace's own methods go over them. */
#ifndef CULET_AGENT_WALK_H
#define CULET_AGENT_WALK_H

#include <stddef.h>

/* One run of slots; returns whether to end the walk. May raise. */
typedef int culet_walk_function(void *start, void *past, size_t slot_bytes, void *data);

/* Why Ruby's objects cannot be walked over now, a sentence; NULL: they can. With the GVL. May raise. */
const char *culet_walk_obstacle(void);

/*
 * Walks, where there is no obstacle. GC is off meanwhile, and rb_gc_disable ends a sweep that is under way: so no object
 * is met whose neighbours are gone already, which is what such walks have crashed on. With the GVL.
 *
 * Returns 0, or the state for rb_jump_tag when the function raised.
 */
int culet_walk(culet_walk_function *function, void *data);

/* As culet_walk, for what comes after the runs of slots are known: calls a function with GC off. */
int culet_walk_without_gc(void (*function)(void *data), void *data);

#endif
