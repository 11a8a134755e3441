/* complain.h - the program's only way out on failure: one sentence, exit status 1.
 *
 * The kernel lets go of a traced process when its tracer ends, so this is safe while the process is paused. */
#ifndef CULET_COMPLAIN_H
#define CULET_COMPLAIN_H

/* Prints "culet-scope: " and the sentence, as printf would, to stderr and ends the process with status 1. */
_Noreturn void culet_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
