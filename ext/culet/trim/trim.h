/* trim/trim.h - Culet.trim, Culet.trim_stats and Culet::Trim. */
#ifndef CULET_TRIM_H
#define CULET_TRIM_H

#include <ruby.h>

/* Defines the methods. May raise. */
void culet_init_trim(VALUE culet);

#endif
