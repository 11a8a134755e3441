/*
 * requires_file.h - the file that a recording goes to: lines, each one JSON object. It is mapped, so that what is written
 * is in the kernel's hands at once and SIGKILL loses nothing; what was reserved behind the last line is zero. A forked
 * process has a file of its own.
 */
#ifndef CULET_REQUIRES_FILE_H
#define CULET_REQUIRES_FILE_H

#include <stddef.h>

/* Says where: files named PID-NUMBER.jsonl go to this folder. */
void culet_requires_file_in(const char *folder);

/*
 * Sees to it that this process has a file. Returns 1 if it has one, 2 if it has one since now (its first lines are to be
 * written), 0 if it can have none; that was said on stderr then, once.
 */
int culet_requires_file_ready(void);

/* Whether this process has a file already. */
int culet_requires_file_begun(void);

/* Appends bytes; a line may come in parts. */
void culet_requires_file_add(const char *bytes, size_t length);

#endif
