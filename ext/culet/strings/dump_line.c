#include "strings/dump_line.h"

#include <string.h>

struct reading {
    const char *at, *past;
};

static int take(struct reading *reading, const char *words, size_t length)
{
    if ((size_t)(reading->past - reading->at) < length || memcmp(reading->at, words, length) != 0)
        return 0;
    reading->at += length;
    return 1;
}

#define TAKE(reading, words) take(reading, words, sizeof(words) - 1)

/* A JSON string without escapes; the others are left to a parser. */
static int take_text(struct reading *reading, struct culet_dump_text *text)
{
    const char *end;

    if (!TAKE(reading, "\""))
        return 0;
    end = memchr(reading->at, '"', (size_t)(reading->past - reading->at));
    if (end == NULL || memchr(reading->at, '\\', (size_t)(end - reading->at)) != NULL)
        return 0;
    *text = (struct culet_dump_text){reading->at, (size_t)(end - reading->at)};
    reading->at = end + 1;
    return 1;
}

static int take_number(struct reading *reading, uint64_t *number)
{
    const char *start = reading->at;

    for (*number = 0; reading->at < reading->past && *reading->at >= '0' && *reading->at <= '9'; reading->at++) {
        *number = *number * 10 + (uint64_t)(*reading->at - '0');
        if (*number > CULET_DUMP_LINE_MAX)
            return 0;
    }
    return reading->at > start;
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static int take_address(struct reading *reading, uint64_t *address)
{
    struct culet_dump_text text;

    return take_text(reading, &text) && culet_dump_line_address(text.bytes, text.length, address);
}

int culet_dump_line_address(const char *bytes, size_t length, uint64_t *address)
{
    *address = 0;
    if (length < 3 || length > 2 + 16 || memcmp(bytes, "0x", 2) != 0)
        return 0;
    for (size_t i = 2; i < length; i++) {
        int digit = hex_digit(bytes[i]);
        if (digit < 0)
            return 0;
        *address = *address << 4 | (uint64_t)digit;
    }
    return 1;
}

static int take_truth(struct reading *reading, int *truth)
{
    *truth = TAKE(reading, "true");
    return *truth || TAKE(reading, "false");
}

/* The first of a list of addresses, which may be empty. */
static int take_first_address(struct reading *reading, uint64_t *address)
{
    uint64_t further;

    if (!TAKE(reading, "["))
        return 0;
    if (TAKE(reading, "]"))
        return 1;
    if (!take_address(reading, address))
        return 0;
    while (TAKE(reading, ", "))
        if (!take_address(reading, &further))
            return 0;
    return TAKE(reading, "]");
}

/* Skips a value. Nested values are flat: lists of strings, objects of booleans. */
static int skip_value(struct reading *reading)
{
    struct culet_dump_text text;
    uint64_t number;
    int truth;

    if (reading->at == reading->past)
        return 0;
    switch (*reading->at) {
    case '"':
        return take_text(reading, &text);
    case '{': {
        const char *end = memchr(reading->at, '}', (size_t)(reading->past - reading->at));
        if (end == NULL || memchr(reading->at + 1, '{', (size_t)(end - reading->at - 1)) != NULL)
            return 0;
        if (memchr(reading->at, '\\', (size_t)(end - reading->at)) != NULL)
            return 0;
        reading->at = end + 1;
        return 1;
    }
    case 't':
    case 'f':
        return take_truth(reading, &truth);
    default:
        return take_number(reading, &number);
    }
}

#define KEY(words) (key.length == sizeof(words) - 1 && memcmp(key.bytes, words, sizeof(words) - 1) == 0)

static int take_member(struct reading *reading, struct culet_dump_line *line)
{
    struct culet_dump_text key;
    uint64_t ignored = 0;

    if (!take_text(reading, &key) || !TAKE(reading, ":"))
        return 0;
    if (KEY("class"))
        return take_address(reading, &line->class_address);
    if (KEY("bytesize"))
        return line->has_bytesize = take_number(reading, &line->bytesize);
    if (KEY("memsize"))
        return line->has_memsize = take_number(reading, &line->memsize);
    if (KEY("slot_size"))
        return take_number(reading, &line->slot_size) && line->slot_size <= UINT32_MAX;
    if (KEY("line"))
        return take_number(reading, &line->line);
    if (KEY("embedded"))
        return take_truth(reading, &line->embedded);
    if (KEY("shared"))
        return take_truth(reading, &line->shared);
    if (KEY("fstring"))
        return take_truth(reading, &line->interned);
    if (KEY("frozen"))
        return take_truth(reading, &line->frozen);
    if (KEY("value"))
        return take_text(reading, &line->value);
    if (KEY("encoding"))
        return take_text(reading, &line->encoding);
    if (KEY("file"))
        return take_text(reading, &line->file);
    /* The first reference of a shared string is its root; other references are instance variables. */
    if (KEY("references"))
        return take_first_address(reading, line->shared ? &line->root : &ignored);
    return skip_value(reading);
}

enum culet_dump_line_kind culet_dump_line_read(const char *bytes, size_t length, struct culet_dump_line *line)
{
    struct reading reading = {bytes, bytes + length};

    memset(line, 0, sizeof(*line));
    if (length == 0 || bytes[length - 1] != '}')
        return LINE_UNKNOWN;
    if (TAKE(&reading, "{\"type\":\""))
        return LINE_OTHER; /* GC roots have no address */
    if (!TAKE(&reading, "{\"address\":") || !take_address(&reading, &line->address) || !TAKE(&reading, ", \"type\":\""))
        return LINE_UNKNOWN;
    if (!TAKE(&reading, "STRING\""))
        return LINE_OTHER;
    while (TAKE(&reading, ", "))
        if (!take_member(&reading, line))
            return LINE_UNKNOWN;
    return TAKE(&reading, "}") && reading.at == reading.past && line->has_memsize ? LINE_STRING : LINE_UNKNOWN;
}
