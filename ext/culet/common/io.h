/* common/io.h - whole reads and writes of a descriptor. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Writes all bytes. Returns 0 or an errno. */
int culet_write_all(int fd, const void *bytes, size_t length);

/* Reads so many bytes at an offset. Returns how many there were before the end of the file; 0 if they cannot be read. */
size_t culet_read_all_at(int fd, void *bytes, size_t length, off_t offset);
