/* profile/objects.h - samples Ruby's objects, whose slots do not come from malloc one by one.
 *
 * An event hook at each allocation would double its time, so the hook is enabled in short windows only. A thread opens and
 * closes a window at random times; what it stands for follows from the share of time that windows cover. */
#pragma once

#include <ruby.h>

#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "profile/interned.h"

void culet_init_profile_objects(void);

/* After the profile was started: samples from now on, in this process and those it forks. Forgets the objects of a former
 * profile, unless sampling is on already. Requires the GVL. May raise. */
void culet_objects_start(void);

/* Ends sampling. Requires the GVL. May raise. */
void culet_objects_stop(void);

/* Before the profile is written: removes the samples of objects that are gone. Requires the GVL. May raise. */
void culet_objects_check(void);

/* Adds the line O, if there was a window. Returns the number of lines. */
uint64_t culet_objects_write_totals(struct culet_buffer *buffer);

/* Adds a line T for each type whose bit in `used` is set. Returns the number of lines. */
uint64_t culet_objects_write_types(struct culet_buffer *buffer, const culet_interned_bits used);

/* Sets, by the number of its sample, the address of each object that has not been collected. They are valid until the next
 * collection. Requires the GVL, in the main Ractor. May raise. */
void culet_objects_addresses(VALUE *addresses, size_t count);
