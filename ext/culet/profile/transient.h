/* profile/transient.h - the buffers of young arrays and hashes on Ruby up to 3.2, which come from the transient heap.
 *
 * They pass no malloc. A collection copies those that are left into blocks of malloc, as deferred work, whose stack says
 * nothing of the object. So the bytes count with the sampled object, and the copies are marked CULET_MARK_DEFERRED. */
#pragma once

#include <ruby.h>

#include <stdbool.h>
#include <stddef.h>

/* Once. */
void culet_transient_prepare(void);

/* Whether there is such a heap, and the bytes in it can be told. */
bool culet_transient_exists(void);

/* The bytes that an object has in the transient heap. */
size_t culet_transient_bytes(VALUE object);
