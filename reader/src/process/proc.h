/* proc.h - single values from files in /proc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The path of a file, by printf's arguments; for use in one expression. */
struct culet_proc_path {
    char text[96];
};
struct culet_proc_path culet_proc_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Fields of a stat file by their numbers in proc(5), up to this one, exclusive. */
#define CULET_PROC_FIELDS 29

/* Reads the first line of a file, without its newline, into `line` (`room` bytes). Returns false, and "", on
 * failure. */
bool culet_proc_line(const char *file, char *line, size_t room);

/* Reads the number after "KEY:". */
bool culet_proc_number(const char *file, const char *key, long *number);

/* Reads the state (field 3) and the fields from 4 on of a stat file. */
bool culet_proc_stat(const char *file, char *state, uint64_t fields[CULET_PROC_FIELDS]);

/* Lists the threads of a process, to be freed. Returns their number; 0: there is no such process. */
size_t culet_proc_threads(pid_t process, pid_t **threads);

/* The state of a thread as a letter; 'X': the process has no such thread. */
char culet_proc_state(pid_t process, pid_t tid);

/* The title that a process set by overwriting its arguments, as Puma and Sidekiq do: one argument with spaces. Other
 * arguments are never reported, since they may be secret. `text` gets at most `bytes` with the NUL; "": no title. */
void culet_proc_title(pid_t pid, char *text, size_t bytes);
