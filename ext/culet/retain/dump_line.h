/* retain/dump_line.h - reads a line of an ObjectSpace dump: a JSON object. Members that are not listed here are
 * skipped, whatever they hold. */
#pragma once

#include "strings/dump_line.h"

struct culet_object_line {
    uint64_t address, class_address; /* 0: none, as of a root */
    uint64_t memsize, slot_size;
    struct culet_dump_text type, root, name, structure, internal, value; /* as in the file, with its escapes */
    const char *references, *past; /* what is in the brackets; NULL: there are none */
    int singleton;
};

/* Reads a line without its line end. Returns whether it is one of a dump. */
int culet_object_line_read(const char *bytes, size_t length, struct culet_object_line *line);

/* The next of a line's references. Returns 0 at the end, -1 if it is no address. */
int culet_object_line_reference(struct culet_object_line *line, uint64_t *address);
