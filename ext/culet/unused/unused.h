/* unused/unused.h - Culet::Unused: which lines ran outside of the bodies of files and classes, and what code there is. */
#ifndef CULET_UNUSED_H
#define CULET_UNUSED_H

#include <ruby.h>

void culet_init_unused(VALUE culet);

#endif
