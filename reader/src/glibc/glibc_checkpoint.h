/* glibc_checkpoint.h - states that a walk can go back to, because the heap has changed since. */
#pragma once

#include "glibc/glibc_tally.h"

void culet_glibc_checkpoint_init(struct culet_glibc_walk *walk);
void culet_glibc_checkpoint_free(struct culet_glibc_walk *walk);

/* Saves the current state; the oldest checkpoint is dropped if there are too many. */
void culet_glibc_checkpoint_save(struct culet_glibc_walk *walk);

/* Goes back to the newest checkpoint and removes it, unless it is the only one. */
void culet_glibc_checkpoint_restore(struct culet_glibc_walk *walk);

/* Updates the arena's top and the end of the region. Goes back if the region is shorter than what was walked.
 * Returns false if the heap is gone. */
bool culet_glibc_checkpoint_refresh(struct culet_glibc_walk *walk);
