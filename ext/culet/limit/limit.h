/* limit/limit.h - the Ruby methods of Culet::Limit that need native code. */
#pragma once

#include <ruby.h>

#include "common/buffer.h"

void culet_init_limit(VALUE culet);

/* Writes the value of Culet::Limit.status as JSON; {} without culet/limit. Main thread. May raise. */
void culet_limit_answer(struct culet_buffer *buffer);
