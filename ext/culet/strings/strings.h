/* strings/strings.h - Culet::Strings.analyse, .site_names and Culet::Strings::Scanner. */
#ifndef CULET_STRINGS_H
#define CULET_STRINGS_H

#include <ruby.h>

void culet_init_strings(VALUE culet);

#endif
