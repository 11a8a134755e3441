/* agent/strings.h - every String of this process, a slice at a time. */
#ifndef CULET_AGENT_STRINGS_H
#define CULET_AGENT_STRINGS_H

#include "common/buffer.h"

#include <stdint.h>

struct culet_strings_options {
  uint64_t from;        /* the slot to begin with: 0, or what the slice before told as next */
  int collect;          /* whether garbage is collected first: what is dead is told too, otherwise, until it is swept */
  int content;          /* whether the strings' bytes are told; if not, digests of them */
  double limit_seconds; /* end the slice after that, or after twice what finding the objects takes; 0: at once */
};

/*
 * Adds one JSON object and a line's end, and behind it the strings from that slot on, in the order of addresses, as records
 * (strings/record.h). Ends after the limit, or with some MB: the program goes on between two slices. What is born, freed or
 * moved meanwhile may be missed. Called with the GVL, by a Ruby thread, which it occupies meanwhile. May raise.
 *
 * {"kind":"strings","next":N or null (that was all),"seconds":...,"collection_seconds":...,"strings":N,"sites":true or
 * false (whether objspace is there to tell who allocated them),"why":"" or a sentence: why there is nothing}
 */
void culet_strings_write(struct culet_buffer *buffer, const struct culet_strings_options *options);

#endif
