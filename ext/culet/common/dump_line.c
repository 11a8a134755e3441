#include "common/dump_line.h"

#include <ruby.h>
#include <ruby/util.h>

struct reading {
    const char *at, *past;
};

static void skip_blanks(struct reading *reading)
{
    while (reading->at < reading->past && (*reading->at == ' ' || *reading->at == '\t' || *reading->at == '\r'))
        reading->at++;
}

static bool take(struct reading *reading, char byte)
{
    skip_blanks(reading);
    if (reading->at == reading->past || *reading->at != byte)
        return false;
    reading->at++;
    return true;
}

/* A JSON string; the text is what is between the quotes. */
static bool take_text(struct reading *reading, struct culet_dump_text *text)
{
    if (!take(reading, '"'))
        return false;
    text->bytes = reading->at;
    for (; reading->at < reading->past; reading->at++) {
        if (*reading->at == '\\')
            reading->at++;
        else if (*reading->at == '"')
            break;
    }
    if (reading->at >= reading->past)
        return false;
    text->length = (size_t)(reading->at++ - text->bytes);
    return true;
}

/* Skips a value. Brackets are only counted: what is in them is not read. */
static bool skip_value(struct reading *reading)
{
    struct culet_dump_text text;
    size_t depth = 0;

    skip_blanks(reading);
    do {
        if (reading->at == reading->past)
            return false;
        switch (*reading->at) {
        case '"':
            if (!take_text(reading, &text))
                return false;
            break;
        case '[':
        case '{':
            depth++;
            reading->at++;
            break;
        case ']':
        case '}':
            if (depth == 0)
                return false;
            depth--;
            reading->at++;
            break;
        case ',':
            if (depth == 0)
                return false;
            reading->at++;
            break;
        default: {
            const char *start = reading->at;
            while (reading->at < reading->past && strchr("\"[]{},", *reading->at) == NULL)
                reading->at++;
            if (reading->at == start)
                return false; /* a zero byte */
            break;
        }
        }
    } while (depth > 0);
    return true;
}

static bool take_number(struct reading *reading, uint64_t *number)
{
    const char *start;

    skip_blanks(reading);
    start = reading->at;
    for (*number = 0; reading->at < reading->past && *reading->at >= '0' && *reading->at <= '9'; reading->at++) {
        *number = *number * 10 + (uint64_t)(*reading->at - '0');
        if (*number > CULET_DUMP_LINE_MAX)
            return false;
    }
    return reading->at > start;
}

/* "0x" and up to 16 digits. */
static bool take_address(struct reading *reading, uint64_t *address)
{
    struct culet_dump_text text;
    size_t digits;

    if (!take_text(reading, &text) || text.length < 3 || text.length > 2 + 16 || memcmp(text.bytes, "0x", 2) != 0)
        return false;
    *address = ruby_scan_hex(text.bytes + 2, text.length - 2, &digits);
    return digits == text.length - 2;
}

static bool take_truth(struct reading *reading, bool *truth)
{
    const char *words;

    skip_blanks(reading);
    *truth = reading->at < reading->past && *reading->at == 't';
    words = *truth ? "true" : "false";
    if ((size_t)(reading->past - reading->at) < strlen(words) || memcmp(reading->at, words, strlen(words)) != 0)
        return false;
    reading->at += strlen(words);
    return true;
}

static bool take_list(struct reading *reading, struct culet_dump_line *line)
{
    const char *end;

    if (!take(reading, '['))
        return false;
    end = memchr(reading->at, ']', (size_t)(reading->past - reading->at));
    if (end == NULL)
        return false;
    line->references = reading->at;
    line->past = end;
    reading->at = end + 1;
    return true;
}

#define KEY(words) (key.length == sizeof(words) - 1 && memcmp(key.bytes, words, sizeof(words) - 1) == 0)

static bool take_member(struct reading *reading, struct culet_dump_line *line)
{
    struct culet_dump_text key;

    if (!take_text(reading, &key) || !take(reading, ':'))
        return false;
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
    if (KEY("encoding"))
        return take_text(reading, &line->encoding);
    if (KEY("file"))
        return take_text(reading, &line->file);
    if (KEY("line"))
        return take_number(reading, &line->line);
    if (KEY("memsize"))
        return line->has_memsize = take_number(reading, &line->memsize);
    if (KEY("bytesize"))
        return line->has_bytesize = take_number(reading, &line->bytesize);
    if (KEY("slot_size"))
        return take_number(reading, &line->slot_size);
    if (KEY("singleton"))
        return take_truth(reading, &line->singleton);
    if (KEY("embedded"))
        return take_truth(reading, &line->embedded);
    if (KEY("shared"))
        return take_truth(reading, &line->shared);
    if (KEY("fstring"))
        return take_truth(reading, &line->interned);
    if (KEY("frozen"))
        return take_truth(reading, &line->frozen);
    if (KEY("references"))
        return take_list(reading, line);
    skip_blanks(reading);
    if (KEY("value") && reading->at < reading->past && *reading->at == '"')
        return take_text(reading, &line->value);
    return skip_value(reading);
}

bool culet_dump_line_read(const char *bytes, size_t length, const char *only, struct culet_dump_line *line)
{
    struct reading reading = {bytes, bytes + length};

    memset(line, 0, sizeof(*line));
    if (!take(&reading, '{'))
        return false;
    do {
        if (!take_member(&reading, line))
            return false;
        if (only != NULL && line->type.bytes != NULL && !culet_dump_text_is(&line->type, only))
            return true;
    } while (take(&reading, ','));
    if (!take(&reading, '}'))
        return false;
    skip_blanks(&reading);
    return reading.at == reading.past && line->type.bytes != NULL;
}

int culet_dump_line_reference(struct culet_dump_line *line, uint64_t *address)
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
