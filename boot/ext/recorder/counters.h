/* recorder/counters.h - what the calling thread has used so far, without the recorder itself. */
#pragma once

#include <ruby.h>

#include <stdint.h>

/* cpu_seconds: of the thread. objects, object_bytes (slots): of the thread if objects are followed, else of all
 * threads. */
struct culet_counters {
    double seconds, cpu_seconds;
    uint64_t objects, object_bytes, mallocs, malloc_bytes, paths, failed_paths;
};

/* Looks up culet-syscall-counter.so, and follows allocations of objects on request. Returns whether the library is
 * loaded. */
int culet_counters_start(int follow_objects);

/* Whether allocations of objects are followed. */
int culet_counters_follow(void);

/* Memory and time between the two calls count as the recorder's own. Calls do not nest. */
struct culet_counters culet_counters_pause(void);
void culet_counters_resume(void);

/* later - earlier */
struct culet_counters culet_counters_since(const struct culet_counters *later, const struct culet_counters *earlier);

/* Sets the tag for objects that the calling thread allocates from now on; 0: none. Returns the previous one. */
uint32_t culet_counters_tag(uint32_t tag);
