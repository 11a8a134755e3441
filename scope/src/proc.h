/* proc.h - single facts out of files of /proc. */
#ifndef CULET_PROC_H
#define CULET_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Fields of a stat file, by their numbers in proc(5): up to this one, not included. */
#define CULET_PROC_FIELDS 29

/* Reads a file's first line, without its end, into `line` of `room` bytes; false, and "", when there is none. */
bool culet_proc_line(const char *file, char *line, size_t room);

/* Reads the number behind "KEY:"; false when the file has none. */
bool culet_proc_number(const char *file, const char *key, long *number);

/* Reads the state's letter (field 3) and the fields from 4 on of a stat file; false when it cannot be read. */
bool culet_proc_stat(const char *file, char *state, uint64_t fields[CULET_PROC_FIELDS]);

/* The letter of a thread's state; 'X' when the process has no such thread. */
char culet_proc_state(pid_t process, pid_t tid);

#endif
