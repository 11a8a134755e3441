/* recorder/file.h - the file of a recording: lines of JSON, written at once, so that SIGKILL loses nothing. Not mapped,
 * because truncating a mapped file would kill the program. A forked process has a file of its own. */
#pragma once

#include <stddef.h>

/* Sets the folder for files named PID-NUMBER.jsonl. */
void culet_recorder_file_in(const char *folder);

/* Makes sure that this process has a file. Returns 1 if it has one, 2 if it was just created, 0 if it cannot have one;
 * the reason is printed on stderr once. */
int culet_recorder_file_ready(void);

/* Whether this process has a file already. */
int culet_recorder_file_begun(void);

/* Appends bytes. On an error recording ends, with a message on stderr. */
void culet_recorder_file_add(const char *bytes, size_t length);
