/* requires/counters.h - what the calling thread has done so far, less what the recording itself did. */
#ifndef CULET_REQUIRES_COUNTERS_H
#define CULET_REQUIRES_COUNTERS_H

#include <ruby.h>

#include <stdint.h>

/* cpu_seconds: of the thread. objects and object_bytes (of slots), when objects are followed: the thread's; otherwise objects
 * are all threads'. */
struct culet_counters {
  double seconds, cpu_seconds;
  uint64_t objects, object_bytes, mallocs, malloc_bytes, paths, failed_paths;
};

/* Looks for culet-calls.so in this process, and follows objects if asked to. Returns whether the library is there. */
int culet_counters_start(int follow_objects);

/* Whether objects are followed. */
int culet_counters_follow(void);

/* Between the two, whatever is done counts as the recording's own. They do not nest. */
struct culet_counters culet_counters_pause(void);
void culet_counters_resume(void);

/* later - earlier */
struct culet_counters culet_counters_since(const struct culet_counters *later, const struct culet_counters *earlier);

/* The tag for objects that the calling thread makes from now on; 0: none. Returns the one before. */
uint32_t culet_counters_tag(uint32_t tag);

#endif
