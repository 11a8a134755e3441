/* common/buffer.h - a growing buffer in a mapping of its own, so that a report on malloc's and Ruby's heap does not
 * change them; and writing JSON into it. */
#pragma once

#include <ruby.h>

#include <stddef.h>

/* All zeros: empty. */
struct culet_buffer {
    char *bytes;
    size_t length;
    size_t capacity;
    int failed; /* memory ran out: the contents are useless */
};

/* Adds bytes. */
void culet_buffer_add(struct culet_buffer *buffer, const void *bytes, size_t length);

/* Adds `length` bytes for the caller to fill before the next call. Returns their address, or NULL without memory. */
void *culet_buffer_reserve(struct culet_buffer *buffer, size_t length);

/* Adds a C string. */
void culet_buffer_text(struct culet_buffer *buffer, const char *text);

/* Adds what printf would print, up to 511 bytes. */
void culet_buffer_format(struct culet_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a comma, unless a JSON list or object has just begun. */
void culet_buffer_comma(struct culet_buffer *buffer);

/* Adds a JSON string. Bytes above ASCII are copied; the reader handles invalid UTF-8. */
void culet_buffer_json_string(struct culet_buffer *buffer, const char *bytes, size_t length);

/* Adds a value as JSON: nil, true, false, Integer, Float, String, Symbol, Array and Hash of these; of any other object
 * the name of its class. May raise. */
void culet_buffer_json(struct culet_buffer *buffer, VALUE value);

/* Adds the pairs of a Hash as members of a JSON object that has begun. May raise. */
void culet_buffer_json_members(struct culet_buffer *buffer, VALUE hash);

/* Frees the memory and leaves the buffer empty. */
void culet_buffer_free(struct culet_buffer *buffer);
