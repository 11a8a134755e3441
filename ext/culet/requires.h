/* requires.h - Culet::Requires: what each require of this process costs, into a file. */
#ifndef CULET_REQUIRES_H
#define CULET_REQUIRES_H

#include <ruby.h>

void culet_init_requires(VALUE culet);

#endif
