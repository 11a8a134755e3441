/* samples.h - the profile of the process: its tables behind a lock, start and stop, fork. */
#pragma once

#include "tables.h"

/* What the library that samples does when a profile starts and ends; either may be NULL. They may be called in any thread,
 * one at a time. `resident` returns the resident bytes of the heap, cheaply and without locks; NULL: the live bytes are
 * taken. */
struct culet_profile_host {
    void (*started)(void);
    void (*stopped)(void);
    uint64_t (*resident)(void);
};
/* Before the first start. */
void culet_profile_set_host(const struct culet_profile_host *host);

extern const struct culet_profile_api culet_profile_api;

/* Whether the calling thread is inside the profile: what it allocates is not to be sampled. */
bool culet_profile_inside(void);

/* By the library that samples: a sample was due, and is not taken. Any thread, with any lock. */
void culet_profile_skip(enum culet_skip reason);

/* Around fork, by the library that samples. Between them the forking thread may add and remove samples. */
void culet_profile_prepare(void);
void culet_profile_parent(void);
void culet_profile_child(void);

/* A copy of the tables, to be ended by culet_copy_unmap. False: no memory, or no profile. */
bool culet_profile_copy(struct culet_copy *copy);
