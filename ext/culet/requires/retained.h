/* requires/retained.h - what is left at the end: the objects that were made under each feature, and the compiled code. */
#ifndef CULET_REQUIRES_RETAINED_H
#define CULET_REQUIRES_RETAINED_H

#include "common/buffer.h"

#include <stdint.h>

/*
 * Adds lines of JSON:
 *   {"kind":"held","id":N,"objects":N,"bytes":N}   objects with that tag, of tags from `first` on, and what they hold
 *   {"kind":"code","path":P,"eval":B,"bytes":N,"count":N}   of each file the compiled pieces that exist
 * Called with the GVL; all of Ruby stands still meanwhile. May raise.
 *
 * last: the largest tag there is.
 */
void culet_retained_write(struct culet_buffer *buffer, uint32_t first, uint32_t last_slot);

#endif
