/*
 * common/buffer.h - text that grows, JSON above all, in memory of the kernel's own: what is said about malloc's and
 * Ruby's heap is not to change them.
 */
#ifndef CULET_BUFFER_H
#define CULET_BUFFER_H

#include <ruby.h>

#include <stddef.h>

/* All zeroes: empty. */
struct culet_buffer {
  char *bytes;
  size_t length;
  size_t capacity;
  int failed; /* there was no memory for more: the text is of no use */
};

/* Adds bytes as they are. */
void culet_buffer_add(struct culet_buffer *buffer, const void *bytes, size_t length);

/* Adds so many bytes for the caller to fill, before anything else is added. Returns where; NULL: there is no memory. */
void *culet_buffer_reserve(struct culet_buffer *buffer, size_t length);

/* Adds a C string as it is. */
void culet_buffer_text(struct culet_buffer *buffer, const char *text);

/* Adds what printf would print, at most 511 bytes of it. */
void culet_buffer_format(struct culet_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a JSON string. Bytes beyond ASCII stay as they are: whoever reads it takes what is no UTF-8 as data. */
void culet_buffer_json_string(struct culet_buffer *buffer, const char *bytes, size_t length);

/*
 * Adds a value as JSON: nil, true, false, Integer, Float, String, Symbol, Array and Hash of these; of anything else
 * the name of its class. May raise.
 */
void culet_buffer_json(struct culet_buffer *buffer, VALUE value);

/* Adds the pairs of a Hash as members of a JSON object, each with a comma before it. May raise. */
void culet_buffer_json_members(struct culet_buffer *buffer, VALUE hash);

/* Gives its memory back; it is empty then. */
void culet_buffer_free(struct culet_buffer *buffer);

#endif
