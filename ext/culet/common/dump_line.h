/* common/dump_line.h - reads a line of an ObjectSpace dump: a JSON object. Members that are not listed here are skipped,
 * whatever they hold. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Upper bound of every number, so that sums over a dump fit into 64 bits. */
#define CULET_DUMP_LINE_MAX ((uint64_t)1 << 47)

struct culet_dump_text {
    const char *bytes; /* as in the file, with its escapes; NULL: missing */
    size_t length;
};

/* Missing members are zero; `has_` says whether a number is present. */
struct culet_dump_line {
    uint64_t address, class_address;
    uint64_t memsize, slot_size, bytesize, line;
    bool has_memsize, has_bytesize;
    bool singleton, embedded, shared, interned, frozen;
    struct culet_dump_text type, root, name, structure, internal, value, encoding, file;
    const char *references, *past; /* what is in the brackets; NULL: there are none */
};

static inline bool culet_dump_text_is(const struct culet_dump_text *text, const char *words)
{
    return text->bytes != NULL && text->length == strlen(words) && memcmp(text->bytes, words, text->length) == 0;
}

/* Reads a line without its line end. only: a type; lines of other types are read up to theirs. NULL: all are read whole.
 * Returns whether it is a line of a dump. */
bool culet_dump_line_read(const char *bytes, size_t length, const char *only, struct culet_dump_line *line);

/* The next of a line's references. Returns 0 at the end, -1 if it is no address. */
int culet_dump_line_reference(struct culet_dump_line *line, uint64_t *address);
