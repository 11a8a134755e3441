/* reading/kernel_file.h - small files of the kernel, as text. Allocates nothing; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of a figure that cannot be read, or that Ruby or the allocator does not count. */
#define CULET_UNKNOWN UINT64_MAX

/* A file by its descriptor, or, where that is -1, by its path, which is opened for each reading: a forked child would read
 * its parent's file, and a program that closes all descriptors would make a thread read another one. Neither: no
 * file. */
struct culet_kernel_file {
    int descriptor;
    char path[512];
};

/* Reads a file from its start into a terminated text; what does not fit is cut. Returns whether there is any. */
bool culet_kernel_file_read(const struct culet_kernel_file *file, char *text, size_t size);

/* Reads the file of a path. */
bool culet_kernel_file_read_path(const char *path, char *text, size_t size);

/* The number that a file begins with, or CULET_UNKNOWN. */
uint64_t culet_kernel_file_number(const struct culet_kernel_file *file);

/* The number at the start of a text, or CULET_UNKNOWN. */
uint64_t culet_number(const char *text);

/* The number behind a name at the start of a line; spaces and a colon in between. CULET_UNKNOWN without the line. */
uint64_t culet_number_of(const char *text, const char *name);

/* The number behind a name, or 0. */
uint64_t culet_number_or_0(const char *text, const char *name);
