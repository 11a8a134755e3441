/*
 * common/original_function.h - the C function behind one of Ruby's own methods.
 *
 * A method that calls the one it replaced, by any of Ruby's means, adds a frame to every backtrace and hides the caller
 * from require_relative. A C function that calls the other C function does not.
 */
#ifndef CULET_ORIGINAL_FUNCTION_H
#define CULET_ORIGINAL_FUNCTION_H

#include <ruby.h>

/* The function that a singleton method of a module is made of; NULL where it is not one of Ruby's own C functions, or
 * cannot be found out. */
void *culet_original_function(VALUE module, const char *name);

#endif
