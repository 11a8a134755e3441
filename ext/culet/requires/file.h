/*
 * requires/file.h - the file that a recording goes to: lines, each one JSON object. They are written at once, so that
 * SIGKILL loses nothing; the file is not mapped, because one that is cut off then would end the program. A forked process
 * has a file of its own.
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

/* Appends bytes. Where that fails, the recording ends; that is said on stderr. */
void culet_requires_file_add(const char *bytes, size_t length);

#endif
