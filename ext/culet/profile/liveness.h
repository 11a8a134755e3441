/* profile/liveness.h - which sampled objects are alive.
 *
 * An ObjectSpace::WeakMap follows them. Its methods, like all methods, check for interrupts: Thread#kill or #raise for the
 * thread may take effect there. In a postponed job Ruby would discard it, so a Ruby thread calls the methods, or the
 * writer of the profile. */
#pragma once

#include <ruby.h>

#include <stdbool.h>
#include <stdint.h>

/* `count`: the Symbol of GC.stat for the number of collections, or 0. */
void culet_init_profile_liveness(void);

/* Forgets all samples. Requires the GVL. May raise. */
void culet_liveness_start(void);

/* The next update ends the thread. Requires the GVL. */
void culet_liveness_stop(void);

/* Before Ruby ends its threads: none is started any more. */
void culet_liveness_end(void);

/* Whether there is room for another sample. Calls no method. */
bool culet_liveness_has_room(void);

/* Follows a live object from now on. Requires room. Calls no method. */
void culet_liveness_add(VALUE object, uint32_t sample);

/* After a window, in the main Ractor: has the thread run if there is something to do. Calls no method, but other threads
 * may run. May raise. */
void culet_liveness_update(void);

/* Removes the samples of objects that are gone. Requires the GVL, and a caller that interrupts may end. */
void culet_liveness_check(void);

/* Sets, by the number of its sample, the address of each object that has not been collected. As culet_liveness_check. */
void culet_liveness_addresses(VALUE *addresses, size_t count);
