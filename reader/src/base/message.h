/* message.h - messages on stderr: why the program fails, and notes before the reading.
 *
 * The kernel releases a traced process when its tracer exits, so culet_fail is safe while the process is paused. */
#pragma once

/* Prints "culet-scope: " and the sentence (printf's arguments) to stderr and exits with status 1. */
_Noreturn void culet_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sets the descriptor for notes; stderr by default. */
void culet_note_to(int descriptor);

/* Prints "culet-scope: note: " and the sentence (printf's arguments) in one write of at most 1023 bytes. */
void culet_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
