/* unused/unused.h - Culet::Unused: the lines that ran outside of bodies of files and classes, and the existing code. */
#pragma once

#include <ruby.h>

void culet_init_unused(VALUE culet);
