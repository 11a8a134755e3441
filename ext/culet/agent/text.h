/*
 * agent/text.h - text that grows, JSON above all, in memory of the kernel's own: what is said about malloc's and
 * Ruby's heap is not to change them.
 */
#ifndef CULET_AGENT_TEXT_H
#define CULET_AGENT_TEXT_H

#include <ruby.h>

#include <stddef.h>

/* All zeroes: empty. */
struct culet_text {
  char *bytes;
  size_t length;
  size_t room;
  int failed; /* there was no memory for more: the text is of no use */
};

/* Adds bytes as they are. */
void culet_text_add(struct culet_text *text, const void *bytes, size_t length);

/* Adds so many bytes for the caller to fill, before anything else is added. Returns where; NULL: there is no memory. */
void *culet_text_extend(struct culet_text *text, size_t length);

/* Adds a C string as it is. */
void culet_text_words(struct culet_text *text, const char *words);

/* Adds what printf would print, at most 511 bytes of it. */
void culet_text_format(struct culet_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a JSON string. Bytes beyond ASCII stay as they are: whoever reads it takes what is no UTF-8 as data. */
void culet_text_string(struct culet_text *text, const char *bytes, size_t length);

/*
 * Adds a value as JSON: nil, true, false, Integer, Float, String, Symbol, Array and Hash of these; of anything else
 * the name of its class. May raise.
 */
void culet_text_value(struct culet_text *text, VALUE value);

/* Adds the pairs of a Hash as members of a JSON object, each with a comma before it. May raise. */
void culet_text_members(struct culet_text *text, VALUE hash);

/* Gives its memory back; it is empty then. */
void culet_text_free(struct culet_text *text);

#endif
