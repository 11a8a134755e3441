/* requires/code.h - the compiled code that exists in this process: Ruby's instruction sequences. */
#ifndef CULET_REQUIRES_CODE_H
#define CULET_REQUIRES_CODE_H

#include <ruby.h>

#include <stddef.h>

/* Whether an object is an instruction sequence. */
int culet_code_is(VALUE object);

/* The file of an instruction sequence, a String, and whether it was made by eval. No object is made. */
VALUE culet_code_path(VALUE object, int *eval);

/* Calls a function with each object of Ruby's heap. GC is off meanwhile. False: this Ruby does not let that be done. */
int culet_code_walk(void (*function)(VALUE object, void *data), void *data);

/* What an object holds with its slot, in bytes; 0 of those that do not tell. */
size_t culet_code_bytes(VALUE object);

#endif
