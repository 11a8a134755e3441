/* internals/code.h - the compiled code in this process: Ruby's instruction sequences. */
#pragma once

#include <ruby.h>

#include <stddef.h>

/* Whether an object is an instruction sequence. */
int culet_code_is(VALUE object);

/* The file of an instruction sequence, a String, and whether it was compiled by eval. Allocates no object. */
VALUE culet_code_path(VALUE object, int *eval);

/* Calls a function with each object of Ruby's heap, with GC disabled. Returns 0 if this Ruby does not support it. */
int culet_code_walk(void (*function)(VALUE object, void *data), void *data);

/* Bytes of an object including its slot; 0 if the object does not report them. */
size_t culet_code_bytes(VALUE object);
