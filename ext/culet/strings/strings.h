/* strings/strings.h - Culet::Strings.analyse, .site_names and Culet::Strings::Scanner. */
#pragma once

#include <ruby.h>

void culet_init_strings(VALUE culet);
