/* strings/record_file.h - the file of records (strings/record.h), looked at without its being in memory at once. */
#ifndef CULET_STRINGS_RECORD_FILE_H
#define CULET_STRINGS_RECORD_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "strings/record.h"

struct culet_record_file {
  const unsigned char *bytes;
  size_t size;
  int fd;         /* -1: closed */
  size_t released; /* what lies before is not resident, or not in the way of the looks that are in order */
};

/* Maps the file. Returns 0, or an error's number. An empty file has size 0. */
int culet_record_file_open(struct culet_record_file *file, const char *path);

/*
 * The record at an offset; NULL at the end, or where what is there is no record, or one that contradicts itself: the file
 * has what another process told. Valid until the file is closed.
 */
const struct culet_string_record *culet_record_file_record(struct culet_record_file *file, uint64_t offset);

/* Its content. */
static inline const unsigned char *
culet_strings_content(const struct culet_string_record *record)
{
  return (const unsigned char *)(record + 1);
}

/* To be told of every record that was looked at, in order: lets go of what is resident now and then. */
void culet_record_file_passed(struct culet_record_file *file, const struct culet_string_record *record);

/*
 * Copies the content of the record at an offset, without anything of the file becoming resident.
 *
 * Returns whether that could be done.
 */
int culet_record_file_copy(const struct culet_record_file *file, uint64_t offset, size_t content_bytes, unsigned char *content);

void culet_record_file_close(struct culet_record_file *file);

#endif
