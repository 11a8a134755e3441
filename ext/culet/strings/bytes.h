/* strings/bytes.h - bytes that are gathered. All zeroes: none. */
#ifndef CULET_STRINGS_BYTES_H
#define CULET_STRINGS_BYTES_H

#include <stddef.h>

struct culet_bytes {
  char *bytes;
  size_t length, capacity;
};

/* Adds some. Returns whether there was memory; if not, nothing has changed. */
int culet_bytes_add(struct culet_bytes *gathered, const void *bytes, size_t length);

/* Writes all of them to a file, and keeps the room. Returns 0, or an error's number. */
int culet_bytes_write(struct culet_bytes *gathered, int fd);

void culet_bytes_free(struct culet_bytes *gathered);

#endif
