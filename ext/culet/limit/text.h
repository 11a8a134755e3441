/* limit/text.h - small files of the kernel, as text. Allocates nothing; any thread. */
#ifndef CULET_LIMIT_TEXT_H
#define CULET_LIMIT_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Reads a file from its start into a terminated text. Opens it anew: a forked child would read its parent's. */
int culet_text_read(const char *path, char *text, size_t size);

/* A number at the start of a text; UINT64_MAX without one. */
uint64_t culet_text_number(const char *text);

/* The number behind a name at the start of a line; 0 without the line. */
uint64_t culet_text_field(const char *text, const char *name);

#endif
