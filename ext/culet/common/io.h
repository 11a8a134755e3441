/* common/io.h - whole reads and writes of a descriptor. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Writes all bytes. Returns 0 or an errno. */
int culet_write_all(int fd, const void *bytes, size_t length);

/* Reads all bytes at an offset. Returns 0 or an errno; EIO at the end of the file. */
int culet_read_all_at(int fd, void *bytes, size_t length, off_t offset);
