/* blackbox/blackbox.h - Culet::BlackBox, and requests and jobs by the labels of the profile. */
#ifndef CULET_BLACKBOX_H
#define CULET_BLACKBOX_H

#include <ruby.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Defines the native part of Culet::BlackBox. Nothing is written before Culet::BlackBox.map. */
void culet_init_blackbox(VALUE culet);

/* Whether this process has a black box. */
bool culet_blackbox_runs(void);

/*
 * The running fiber enters a block with labels, of which the outermost is an event: begins it, or gives it another
 * label. Returns the event that has begun; 0: the block is inside of one. In a Ruby thread. May raise.
 */
uint64_t culet_blackbox_enter(const char *label, size_t length);

/* The fiber leaves the block. */
void culet_blackbox_leave(uint64_t event);

#endif
