/* complain.h - what the program says: why it fails, in one sentence, and what must be known beforehand.
 *
 * The kernel lets go of a traced process when its tracer ends, so this is safe while the process is paused. */
#ifndef CULET_COMPLAIN_H
#define CULET_COMPLAIN_H

/* Prints "culet-scope: " and the sentence, as printf would, to stderr and ends the process with status 1. */
_Noreturn void culet_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Where notes go: a descriptor; stderr when this is never called. */
void culet_notes_to(int descriptor);

/* Prints "culet-scope: note: " and the sentence, as printf would, in one write of at most 1023 bytes. */
void culet_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
