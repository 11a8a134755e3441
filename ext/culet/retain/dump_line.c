#include "retain/dump_line.h"

#include <string.h>

struct reading {
    const char *at, *past;
};

static void skip_blanks(struct reading *reading)
{
    while (reading->at < reading->past && (*reading->at == ' ' || *reading->at == '\t' || *reading->at == '\r'))
        reading->at++;
}

static int take(struct reading *reading, char byte)
{
    skip_blanks(reading);
    if (reading->at == reading->past || *reading->at != byte)
        return 0;
    reading->at++;
    return 1;
}

/* A JSON string; the text is what is between the quotes. */
static int take_text(struct reading *reading, struct culet_dump_text *text)
{
    if (!take(reading, '"'))
        return 0;
    text->bytes = reading->at;
    for (; reading->at < reading->past; reading->at++) {
        if (*reading->at == '\\')
            reading->at++;
        else if (*reading->at == '"')
            break;
    }
    if (reading->at >= reading->past)
        return 0;
    text->length = (size_t)(reading->at++ - text->bytes);
    return 1;
}

/* Skips a value. Brackets are only counted: what is in them is not read. */
static int skip_value(struct reading *reading)
{
    struct culet_dump_text text;
    size_t depth = 0;

    skip_blanks(reading);
    do {
        if (reading->at == reading->past)
            return 0;
        switch (*reading->at) {
        case '"':
            if (!take_text(reading, &text))
                return 0;
            break;
        case '[':
        case '{':
            depth++;
            reading->at++;
            break;
        case ']':
        case '}':
            if (depth == 0)
                return 0;
            depth--;
            reading->at++;
            break;
        case ',':
            if (depth == 0)
                return 0;
            reading->at++;
            break;
        default: {
            const char *start = reading->at;
            while (reading->at < reading->past && strchr("\"[]{},", *reading->at) == NULL)
                reading->at++;
            if (reading->at == start)
                return 0; /* a zero byte */
            break;
        }
        }
    } while (depth > 0);
    return 1;
}

static int take_number(struct reading *reading, uint64_t *number)
{
    const char *start;

    skip_blanks(reading);
    start = reading->at;
    for (*number = 0; reading->at < reading->past && *reading->at >= '0' && *reading->at <= '9'; reading->at++) {
        *number = *number * 10 + (uint64_t)(*reading->at - '0');
        if (*number > CULET_DUMP_LINE_MAX)
            return 0;
    }
    return reading->at > start;
}

static int take_address(struct reading *reading, uint64_t *address)
{
    struct culet_dump_text text;

    return take_text(reading, &text) && culet_dump_line_address(text.bytes, text.length, address);
}

static int take_list(struct reading *reading, struct culet_object_line *line)
{
    const char *end;

    if (!take(reading, '['))
        return 0;
    end = memchr(reading->at, ']', (size_t)(reading->past - reading->at));
    if (end == NULL)
        return 0;
    line->references = reading->at;
    line->past = end;
    reading->at = end + 1;
    return 1;
}

#define KEY(words) (key.length == sizeof(words) - 1 && memcmp(key.bytes, words, sizeof(words) - 1) == 0)

static int take_member(struct reading *reading, struct culet_object_line *line)
{
    struct culet_dump_text key;

    if (!take_text(reading, &key) || !take(reading, ':'))
        return 0;
    if (KEY("address"))
        return take_address(reading, &line->address);
    if (KEY("class"))
        return take_address(reading, &line->class_address);
    if (KEY("type"))
        return take_text(reading, &line->type);
    if (KEY("root"))
        return take_text(reading, &line->root);
    if (KEY("name"))
        return take_text(reading, &line->name);
    if (KEY("struct"))
        return take_text(reading, &line->structure);
    if (KEY("imemo_type"))
        return take_text(reading, &line->internal);
    if (KEY("memsize"))
        return take_number(reading, &line->memsize);
    if (KEY("slot_size"))
        return take_number(reading, &line->slot_size);
    if (KEY("references"))
        return take_list(reading, line);
    skip_blanks(reading);
    if (KEY("value") && reading->at < reading->past && *reading->at == '"')
        return take_text(reading, &line->value);
    if (KEY("singleton"))
        line->singleton = reading->at < reading->past && *reading->at == 't';
    return skip_value(reading);
}

int culet_object_line_read(const char *bytes, size_t length, struct culet_object_line *line)
{
    struct reading reading = {bytes, bytes + length};

    memset(line, 0, sizeof(*line));
    if (!take(&reading, '{') || !take_member(&reading, line))
        return 0;
    while (take(&reading, ','))
        if (!take_member(&reading, line))
            return 0;
    if (!take(&reading, '}'))
        return 0;
    skip_blanks(&reading);
    return reading.at == reading.past && line->type.bytes != NULL;
}

int culet_object_line_reference(struct culet_object_line *line, uint64_t *address)
{
    struct reading reading = {line->references, line->past};

    if (line->references == NULL)
        return 0;
    skip_blanks(&reading);
    if (reading.at == reading.past)
        return 0;
    if (!take_address(&reading, address))
        return -1;
    skip_blanks(&reading);
    if (reading.at < reading.past && !take(&reading, ','))
        return -1;
    line->references = reading.at;
    return 1;
}
