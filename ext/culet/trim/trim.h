/* trim/trim.h - Culet.trim, Culet.trim_stats, and what culet/auto starts. */
#ifndef CULET_TRIM_H
#define CULET_TRIM_H

#include <ruby.h>

/* Defines them. Nothing is trimmed before it is asked for. May raise. */
void culet_init_trim(VALUE culet);

#endif
