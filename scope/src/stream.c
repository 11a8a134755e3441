#include "stream.h"

#include "../format.h"
#include "complain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint32_t crc = UINT32_MAX;
static uint32_t crc_table[256];
static unsigned char pending[65536];
static size_t pending_bytes;

/* The table of the reflected polynomial 0xedb88320, as zlib's crc32 has it (RFC 1952, section 8). */
static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? 0xedb88320u ^ (value >> 1) : value >> 1;
        crc_table[i] = value;
    }
}

static void flush(void)
{
    size_t done = 0;

    while (done < pending_bytes) {
        ssize_t wrote = write(STDOUT_FILENO, pending + done, pending_bytes - done);
        if (wrote < 0 && errno != EINTR)
            culet_complain("what was found cannot be written (%s); make room, or write elsewhere", strerror(errno));
        if (wrote > 0)
            done += (size_t)wrote;
    }
    pending_bytes = 0;
}

static void put(const void *from, size_t length)
{
    const unsigned char *bytes = from;

    for (size_t i = 0; i < length; i++)
        crc = crc_table[(crc ^ bytes[i]) & 255] ^ (crc >> 8);
    while (length) {
        size_t part = sizeof pending - pending_bytes;
        if (part > length)
            part = length;
        memcpy(pending + pending_bytes, bytes, part);
        pending_bytes += part;
        bytes += part;
        length -= part;
        if (pending_bytes == sizeof pending)
            flush();
    }
}

void culet_stream_open(void)
{
    make_table();
    put(CULET_SCOPE_MAGIC, CULET_SCOPE_MAGIC_BYTES);
}

void culet_stream_close(void)
{
    uint32_t sum = ~crc;
    unsigned char bytes[4];

    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(sum >> (8 * i));
    culet_stream_record('E', bytes, sizeof bytes);
    flush();
}

void culet_stream_record(char type, const void *bytes, size_t length)
{
    unsigned char head[16];
    size_t at = 0;

    head[at++] = (unsigned char)type;
    uint64_t rest = length;
    for (; rest > 127; rest >>= 7)
        head[at++] = (unsigned char)(rest | 128);
    head[at++] = (unsigned char)rest;
    put(head, at);
    put(bytes, length);
}

/* Length of the valid UTF-8 character at `text`, 0 where there is none (RFC 3629). */
static size_t character(const unsigned char *text)
{
    size_t bytes = *text < 0x80 ? 1 : *text >= 0xc2 && *text < 0xe0 ? 2 : *text >= 0xe0 && *text < 0xf0 ? 3
                   : *text >= 0xf0 && *text < 0xf5 ? 4 : 0;

    for (size_t i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return bytes;
}

static void add_text(struct culet_buffer *to, const char *text)
{
    culet_buffer_byte(to, '"');
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        size_t bytes = character(at);
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

static void key(struct culet_json *json, const char *name)
{
    culet_buffer_print(&json->text, ",\"%s\":", name);
}

void culet_json_begin(struct culet_json *json, const char *kind)
{
    *json = (struct culet_json){0};
    culet_buffer_print(&json->text, "{\"kind\":\"%s\"", kind);
}

void culet_json_number(struct culet_json *json, const char *name, uint64_t number)
{
    key(json, name);
    culet_buffer_print(&json->text, "%llu", (unsigned long long)number);
}

void culet_json_float(struct culet_json *json, const char *name, double number)
{
    key(json, name);
    culet_buffer_print(&json->text, "%.6f", number);
}

void culet_json_bool(struct culet_json *json, const char *name, bool value)
{
    culet_json_raw(json, name, value ? "true" : "false");
}

void culet_json_text(struct culet_json *json, const char *name, const char *text)
{
    key(json, name);
    if (text)
        add_text(&json->text, text);
    else
        culet_buffer_print(&json->text, "null");
}

void culet_json_raw(struct culet_json *json, const char *name, const char *raw)
{
    key(json, name);
    culet_buffer_print(&json->text, "%s", raw);
}

void culet_json_end(struct culet_json *json)
{
    culet_buffer_byte(&json->text, '}');
    culet_stream_record('J', json->text.bytes, json->text.length);
    culet_buffer_free(&json->text);
}

void culet_stream_problem(const char *format, ...)
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
