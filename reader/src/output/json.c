#include "output/json.h"

#include "output/stream.h"
#include "sampler/core/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void add_text(struct culet_buffer *to, const char *text)
{
    culet_buffer_byte(to, '"');
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        size_t bytes = culet_utf8_bytes(at, strnlen((const char *)at, 4));
        if (!bytes) {
            culet_buffer_print(to, "\\ufffd");
            at++;
        } else if (*at == '"' || *at == '\\' || *at < 0x20 || *at == 0x7f) {
            culet_buffer_print(to, "\\u%04x", *at);
            at++;
        } else {
            culet_buffer_add(to, at, bytes);
            at += bytes;
        }
    }
    culet_buffer_byte(to, '"');
}

static void add_key(struct culet_json *json, const char *key)
{
    culet_buffer_print(&json->text, ",\"%s\":", key);
}

void culet_json_begin(struct culet_json *json, const char *kind)
{
    *json = (struct culet_json){0};
    culet_buffer_print(&json->text, "{\"kind\":\"%s\"", kind);
}

void culet_json_number(struct culet_json *json, const char *key, uint64_t number)
{
    add_key(json, key);
    culet_buffer_print(&json->text, "%" PRIu64, number);
}

void culet_json_float(struct culet_json *json, const char *key, double number)
{
    add_key(json, key);
    culet_buffer_print(&json->text, "%.6f", number);
}

void culet_json_seconds(struct culet_json *json, const char *key, uint64_t ns)
{
    culet_json_float(json, key, (double)ns / 1e9);
}

void culet_json_text(struct culet_json *json, const char *key, const char *text)
{
    add_key(json, key);
    if (text)
        add_text(&json->text, text);
    else
        culet_buffer_print(&json->text, "null");
}

void culet_json_raw(struct culet_json *json, const char *key, const char *json_text)
{
    add_key(json, key);
    culet_buffer_print(&json->text, "%s", json_text);
}

void culet_json_end(struct culet_json *json)
{
    culet_buffer_byte(&json->text, '}');
    culet_stream_record(CULET_RECORD_JSON, json->text.bytes, json->text.length);
    culet_buffer_free(&json->text);
}

void culet_json_problem(const char *format, ...)
{
    char sentence[1024];
    struct culet_json json;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    culet_json_begin(&json, "problem");
    culet_json_text(&json, "sentence", sentence);
    culet_json_end(&json);
}
