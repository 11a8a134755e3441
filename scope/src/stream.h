/* stream.h - writes the stream that ../format.h describes, to stdout.
 *
 * Nothing is written while the process is paused: whoever reads the stream may be slow. So walkers keep what they
 * find, and tell it in their `tell` (scope.h). */
#ifndef CULET_STREAM_H
#define CULET_STREAM_H

#include "buffer.h"

#include <stdbool.h>
#include <stdint.h>

/* Writes the magic. */
void culet_stream_open(void);

/* Writes the record 'E' and flushes. A write that fails, here or before, ends the program with a sentence. */
void culet_stream_close(void);

/* One record of `type` with these bytes. */
void culet_stream_record(char type, const void *bytes, size_t length);

/* A JSON object: begin, keys, end. The end writes it as record 'J'. */
struct culet_json {
    struct culet_buffer text;
};

void culet_json_begin(struct culet_json *json, const char *kind);
void culet_json_number(struct culet_json *json, const char *key, uint64_t number);
void culet_json_float(struct culet_json *json, const char *key, double number);
void culet_json_bool(struct culet_json *json, const char *key, bool value);
/* Escaped; bytes that are no UTF-8 become U+FFFD. NULL: null. */
void culet_json_text(struct culet_json *json, const char *key, const char *text);
/* `raw` is JSON already. */
void culet_json_raw(struct culet_json *json, const char *key, const char *raw);
void culet_json_end(struct culet_json *json);

/* A record of kind "problem": the sentence as printf would. */
void culet_stream_problem(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
