/* common/heap_walk.h - all slots of Ruby's heap, with GC off, as ObjectSpace's own methods go over them. */
#ifndef CULET_HEAP_WALK_H
#define CULET_HEAP_WALK_H

#include <ruby.h>

#include <stddef.h>
#include <time.h>

/* Of a string or array: that its elements lie in another's. Which bit it is differs between Rubies; one whose headers do not
 * tell is told of without. */
#ifdef HAVE_CONST_RUBY_ELTS_SHARED
#define CULET_ELEMENTS_SHARED ((VALUE)RUBY_ELTS_SHARED)
#else
#define CULET_ELEMENTS_SHARED ((VALUE)0)
#endif

/* Seconds of CLOCK_MONOTONIC since a moment of it. */
static inline double
culet_seconds_since(const struct timespec *start)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

/* One run of slots; returns whether to end the walk. May raise. */
typedef int culet_heap_walk_function(void *start, void *past, size_t slot_bytes, void *data);

/* Why Ruby's objects cannot be walked over now, a sentence; NULL: they can. With the GVL. May raise. */
const char *culet_heap_walk_obstacle(void);

/*
 * Walks, where there is no obstacle. GC is off meanwhile, and rb_gc_disable ends a sweep that is under way: so no object
 * is met whose neighbours are gone already, which is what such walks have crashed on. With the GVL.
 *
 * Returns 0, or the state for rb_jump_tag when the function raised.
 */
int culet_heap_walk(culet_heap_walk_function *function, void *data);

/* As culet_walk, for what comes after the runs of slots are known: calls a function with GC off. */
int culet_without_gc(void (*function)(void *data), void *data);

#endif
