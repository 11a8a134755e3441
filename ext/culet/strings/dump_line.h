/* strings/dump_line.h - reads a line of an ObjectSpace dump that describes a String, in the form that Ruby's objspace
 * writes: a flat object, no white space but a blank after a comma, no escapes except in values. Any other line is left
 * to a JSON parser. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Upper bound of every number, so that sums over a dump fit into 64 bits. */
#define CULET_DUMP_LINE_MAX ((uint64_t)1 << 47)

struct culet_dump_text {
    const char *bytes; /* NULL: missing */
    size_t length;
};

/* Missing members are zero; `has_` says whether a number is present. */
struct culet_dump_line {
    uint64_t address, class_address, root;
    uint64_t bytesize, memsize, slot_size, line;
    int has_bytesize, has_memsize;
    int embedded, shared, interned, frozen;
    struct culet_dump_text value, encoding, file;
};

enum culet_dump_line_kind { LINE_STRING, LINE_OTHER, LINE_UNKNOWN };

/* Reads a line without its line end. LINE_OTHER: an object of another type. LINE_UNKNOWN: left to a parser. */
enum culet_dump_line_kind culet_dump_line_read(const char *bytes, size_t length, struct culet_dump_line *line);

/* Reads an address: "0x" and up to 16 digits. Returns whether it is one. */
int culet_dump_line_address(const char *bytes, size_t length, uint64_t *address);
