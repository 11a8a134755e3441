/* registry.h - the caches of all threads: the calling thread's own, and the list of those that live. */
#ifndef CULET_REGISTRY_H
#define CULET_REGISTRY_H

#include "types.h"

/* An empty claimed word. A claim that holds nothing points to it, so the fast path needs no test for a missing unit. */
extern _Atomic uint64_t culet_no_claim;

/* The calling thread's cache. A new thread has culet_cache_none; the slow path replaces it. */
extern _Thread_local struct culet_cache *culet_cache __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Placeholders without claims. None: of threads that have not allocated yet. Exited: of threads that are ending or
 * could not get a cache; they take block by block. */
extern struct culet_cache culet_cache_none, culet_cache_exited;

extern struct culet_lock culet_registry_lock;

struct culet_registry_counts {
    size_t threads; /* caches in the list */
    size_t created; /* caches ever added */
};

/* Adds a cache. Returns the counts before. */
struct culet_registry_counts culet_registry_add(struct culet_cache *cache);

/* Removes a cache. [registry lock] */
void culet_registry_remove(struct culet_cache *cache);

/* The head of the list. [registry lock] */
struct culet_cache *culet_registry_first(void);

/* Calls `wait` for each cache's busy word. */
void culet_registry_wait_all(void (*wait)(_Atomic uint32_t *busy));

size_t culet_registry_count(void);

#endif
