/*
 * strings/dump_line.h - one line of a dump that tells a String, in the form in which Ruby's own objspace writes it: a flat
 * object, no white space but a blank behind a comma, no escapes but in values. This is no parser of JSON: whatever it does
 * not know it leaves to one.
 */
#ifndef CULET_STRINGS_DUMP_LINE_H
#define CULET_STRINGS_DUMP_LINE_H

#include <stddef.h>
#include <stdint.h>

/* No figure of a line is larger: sums of all strings of a dump fit into 64 bits. */
#define CULET_DUMP_LINE_MAX ((uint64_t)1 << 47)

struct culet_dump_text {
  const char *bytes; /* NULL: not there */
  size_t length;
};

/* A member that is not there is zero; of a number, `has_` tells. */
struct culet_dump_line {
  uint64_t address, class_address, root;
  uint64_t bytesize, memsize, slot_size, line;
  int has_bytesize, has_memsize;
  int embedded, shared, interned, frozen;
  struct culet_dump_text value, encoding, file;
};

enum culet_dump_line_kind { LINE_STRING, LINE_OTHER, LINE_UNKNOWN };

/*
 * Reads one line, without its end. LINE_OTHER: an object of another type. LINE_UNKNOWN: a parser is to say what it is.
 */
enum culet_dump_line_kind culet_dump_line_read(const char *bytes, size_t length, struct culet_dump_line *line);

/*
 * Reads an address as Ruby writes it, "0x" and up to 16 digits. Returns whether it is one.
 */
int culet_dump_line_address(const char *bytes, size_t length, uint64_t *address);

#endif
