/* strings_file.h - the file of records (strings_record.h), looked at without its being in memory at once. */
#ifndef CULET_STRINGS_FILE_H
#define CULET_STRINGS_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "strings_record.h"

struct culet_strings_file {
  const unsigned char *bytes;
  size_t size;
  size_t window;  /* so much of it may be resident */
  size_t touched; /* at most, since the last release */
};

/* Maps the file. Returns 0, or an error's number. An empty file has size 0. */
int culet_strings_file_open(struct culet_strings_file *file, const char *path);

/* The record at an offset; NULL at the end, or where what is there is no record. Valid until the file is closed. */
const struct culet_string_record *culet_strings_file_record(struct culet_strings_file *file, uint64_t offset);

/* Its content. */
static inline const unsigned char *
culet_strings_content(const struct culet_string_record *record)
{
  return (const unsigned char *)(record + 1);
}

/* To be told of every record that was looked at, in order: lets go of what is resident, if that may be more than the window. */
void culet_strings_file_passed(struct culet_strings_file *file, const struct culet_string_record *record);

/* The same for one that was looked at out of order. */
void culet_strings_file_visited(struct culet_strings_file *file);

void culet_strings_file_close(struct culet_strings_file *file);

#endif
