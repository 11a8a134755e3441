/* json.h - a JSON object that becomes a record of the stream. */
#pragma once

#include "base/buffer.h"

#include <stdint.h>

struct culet_json {
    struct culet_buffer text;
};

void culet_json_begin(struct culet_json *json, const char *kind);
void culet_json_number(struct culet_json *json, const char *key, uint64_t number);
void culet_json_float(struct culet_json *json, const char *key, double number);

/* Nanoseconds, written as seconds. */
void culet_json_seconds(struct culet_json *json, const char *key, uint64_t ns);

/* Escapes the text; invalid UTF-8 becomes U+FFFD, NULL becomes null. */
void culet_json_text(struct culet_json *json, const char *key, const char *text);

/* `json_text` is JSON already. */
void culet_json_raw(struct culet_json *json, const char *key, const char *json_text);

/* Writes the object as a JSON record and frees it. */
void culet_json_end(struct culet_json *json);

/* Writes a record of kind "problem"; the sentence is printf's arguments. */
void culet_json_problem(const char *format, ...) __attribute__((format(printf, 1, 2)));
