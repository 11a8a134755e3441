/* profile/labels.h - label sets: Culet::Profile.label(endpoint: "issues#index") { }.
 *
 * The label set of a fiber is a fiber-local variable, which ends with the fiber and needs no hook at a thread switch. The
 * profile reads the label from the native thread, so it is copied there: when it is set, when fibers switch, and before a
 * sample (culet_labels_refresh). */
#pragma once

#include <ruby.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "profile/interned.h"

/* Defines Culet::Profile.label and labels. */
void culet_init_profile_labels(VALUE profile);

/* The profile was started or stopped. While it runs, new fibers inherit the label set of the fiber that resumes them.
 * Requires the GVL. May raise. */
void culet_labels_start(void);
void culet_labels_stop(void);

/* Sets the native thread's label to that of the running fiber, and returns it. Requires the GVL; allocates nothing. */
uint32_t culet_labels_refresh(void);

/* Sets the native thread's label for samples of another time, until the next refresh. */
void culet_labels_apply(uint32_t label);

/* A listener to blocks with labels, called in a Ruby thread; it may raise.
 *   runs:  whether the others are to be called
 *   enter: a fiber enters a block. label: its pairs for people, UTF-8. Returns a number for `leave`; 0: none
 *   leave: the fiber leaves it */
struct culet_labels_listener {
    bool (*runs)(void);
    uint64_t (*enter)(const char *label, size_t length);
    void (*leave)(uint64_t event);
};

/* Sets the one listener, for good. Requires the GVL. */
void culet_labels_listen(const struct culet_labels_listener *listener);

/* Adds a line L for each label set whose bit in `which` is set. Returns the number of lines. */
uint64_t culet_labels_write(struct culet_buffer *buffer, const culet_interned_bits which);
