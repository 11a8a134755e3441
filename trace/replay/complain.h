/* complain.h - the program's only way out on failure: one sentence, exit status 1. */
#ifndef CULET_COMPLAIN_H
#define CULET_COMPLAIN_H

/* Prints "culet-replay: " and the sentence, as printf would, to stderr and ends the process with status 1. */
_Noreturn void culet_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
