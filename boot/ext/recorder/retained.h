/* recorder/retained.h - what is left at exit: the objects allocated under each require, and the compiled code. */
#pragma once

#include "common/buffer.h"

#include <stdint.h>

/* Adds JSON lines:
 *   {"kind":"held","id":N,"objects":N,"bytes":N}            objects with a tag from `first` to `last`
 *   {"kind":"code","path":P,"eval":B,"bytes":N,"count":N}   instruction sequences of a file
 * Requires the GVL; Ruby's threads stop meanwhile. May raise. */
void culet_retained_write(struct culet_buffer *buffer, uint32_t first, uint32_t last_slot);
