/* interpreter.h - whether the process runs Ruby, and which. */
#pragma once

#include "reading.h"

/* Whether the process runs Ruby: it has mapped libruby, or its program's name begins with ruby. */
bool culet_ruby_is_loaded(const struct culet_reading *reading);

/* Reads Ruby's version from the file of the interpreter; "": unknown. */
void culet_ruby_read_version(const struct culet_reading *reading, char *version, size_t room);

/* A garbage collector loaded as a library, by RUBY_GC_LIBRARY (gc.c of Ruby), or NULL. */
const struct culet_mapping *culet_ruby_collector(const struct culet_reading *reading);
