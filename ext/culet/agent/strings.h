/* agent/strings.h - the strings of this process, in slices. */
#pragma once

#include "common/buffer.h"

#include <stdint.h>

struct culet_strings_options {
    uint64_t from; /* the slot to start at: 0, or `next` of the previous slice */
    int collect;   /* whether to collect garbage first; otherwise dead strings are reported until they are swept */
    int content;   /* whether to report the strings' bytes instead of digests */
    /* ends the slice, but not before twice the time that listing the pages takes; 0: as early as possible */
    double limit_seconds;
};

/* Adds a JSON line, then the strings from a slot on, by address, as records (strings/record.h), until the limit or some
 * MB; the program runs between two slices. Strings that are allocated, freed or moved meanwhile may be missed. Requires
 * the GVL and a Ruby thread, which is busy meanwhile. May raise.
 *
 * {"kind":"strings","next":N or null (last slice),"seconds":...,"collection_seconds":...,"strings":N,"sites":whether
 * allocation sites are reported,"why":"" or why there are no strings} */
void culet_strings_write(struct culet_buffer *buffer, const struct culet_strings_options *options);
