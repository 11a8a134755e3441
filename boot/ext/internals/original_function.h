/* internals/original_function.h - the C function behind one of Ruby's own methods.
 *
 * A method that calls the method it replaced adds a frame to each backtrace and hides the caller from require_relative.
 * A C function that calls the original C function does neither. */
#pragma once

#include <ruby.h>

/* The function of a module's singleton method. NULL if the method is not one of Ruby's own C functions, or the function
 * cannot be found. */
void *culet_original_function(VALUE module, const char *name);
