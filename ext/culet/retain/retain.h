/* retain/retain.h - retention: the holders of the objects of a process or of a dump. */
#pragma once

#include <ruby.h>

#include "retain/brief.h"
#include "retain/options.h"
#include "sampler/core/profile.h"

/* Why this process cannot be analysed, or NULL. Before it is forked. May raise. */
const char *culet_retain_obstacle(void);

/* Analyses this process, which is a forked copy of the program, and writes the report, or a heap snapshot.
 *
 * samples: of its profile, empty where they were not asked for; pid: of the program; fork_seconds: how long the fork
 * took; output: a descriptor
 *
 * Returns NULL, or a sentence on why not. */
const char *culet_retain_process(const struct culet_retain_options *options,
                                 const struct culet_profile_samples *samples, long pid, double fork_seconds,
                                 int output);

/* The largest holders of this process, which is a forked copy of the program.
 *
 * options: the limits; earlier: what was found before
 *
 * Returns NULL, or a sentence on why not. */
const char *culet_retain_brief(const struct culet_retain_options *options, const struct culet_brief *earlier,
                               struct culet_brief *found);

/* Gets an object and the bytes of its slot. Returns whether to go on. */
typedef int culet_retain_object_function(VALUE object, size_t slot_bytes, void *data);

/* Calls a function for each reachable object of this process, which is a forked copy of the program.
 *
 * options: the limits
 *
 * Returns NULL, or a sentence on why not. */
const char *culet_retain_each(const struct culet_retain_options *options, culet_retain_object_function *function,
                              void *data);

void culet_init_retain(VALUE culet);
