/* profile/frames.h - Ruby's frames in a sample: their ids, and the names behind them.
 *
 *   new frame: id, VALUE marked --(postponed job)--> named --(two major collections without use)--> VALUE forgotten
 *
 * Memory comes from mmap. Nothing here calls malloc while a sample is taken. */
#pragma once

#include "common/buffer.h"
#include "sampler/core/profile.h"

/* Maps the table, registers the object that marks it, and the fork handlers. Once, with the GVL, not during GC. False:
 * no memory. May raise. */
bool culet_profile_frames_prepare(void);

/* From now on, and no longer: Ruby can be asked. */
void culet_profile_frames_enable(bool enabled);

/* A culet_profile_frames. */
size_t culet_profile_frames_words(const uintptr_t *pcs, size_t count, uint64_t *words, size_t max);

/* Gives names to the frames that have none. With the GVL, not during GC. May raise. */
void culet_profile_frames_name(void);

/* A major collection begins; may be called during GC. */
void culet_profile_frames_collection(void);

/* Number of the ids given out, which are 1 to this number. */
uint32_t culet_profile_frames_count(void);

/* Adds the line F of a frame. */
void culet_profile_frames_write(struct culet_buffer *buffer, uint32_t id);
