/* stream.h - writes the records of reader/format.h to stdout.
 *
 * Nothing is written while the process is paused, because the reader of the stream may be slow: walkers keep their
 * results until their `write` is called (walker.h). A failed write ends the program with a message. */
#pragma once

#include "reader/format.h"

#include <stddef.h>

/* Writes the magic. */
void culet_stream_open(void);

void culet_stream_record(enum culet_record_type type, const void *bytes, size_t length);

/* Writes the end record and flushes. */
void culet_stream_close(void);
