/* strings/strings.h - Culet::Strings::Scanner and .analyse: what Ruby asks of the analysis of strings. */
#ifndef CULET_STRINGS_H
#define CULET_STRINGS_H

#include <ruby.h>

void culet_init_strings(VALUE culet);

#endif
