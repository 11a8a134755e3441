/* limit/limit.h - the Ruby methods of Culet::Limit that need native code. */
#ifndef CULET_LIMIT_H
#define CULET_LIMIT_H

#include <ruby.h>

#include "common/buffer.h"

void culet_init_limit(VALUE culet);

/* Writes what Culet::Limit.status returns, as JSON; {} without culet/limit. Main thread. May raise. */
void culet_limit_answer(struct culet_buffer *buffer);

#endif
