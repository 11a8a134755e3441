/* strings/record_file.h - reads the file of records (strings/record.h) without all of it being resident. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "strings/record.h"

struct culet_record_file {
    const unsigned char *bytes;
    size_t size;
    int fd;          /* -1: closed */
    size_t released; /* offset up to which pages were released */
};

/* Maps the file. Returns 0 or an errno. An empty file has size 0. */
int culet_record_file_open(struct culet_record_file *file, const char *path);

/* The record at an offset; NULL at the end, and for an inconsistent record: the contents come from another process.
 * Valid until the file is closed. */
const struct culet_string_record *culet_record_file_record(struct culet_record_file *file, uint64_t offset);

/* Its content. */
static inline const unsigned char *culet_strings_content(const struct culet_string_record *record)
{
    return (const unsigned char *)(record + 1);
}

/* Called for each record in order; now and then releases the pages before it. */
void culet_record_file_passed(struct culet_record_file *file, const struct culet_string_record *record);

/* Copies a record's content by read(2), so that no page of the mapping becomes resident. Returns 0 on an error. */
int culet_record_file_copy(const struct culet_record_file *file, uint64_t offset, size_t content_bytes,
                           unsigned char *content);

void culet_record_file_close(struct culet_record_file *file);
