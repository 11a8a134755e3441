/* trim/trim.h - Culet.trim, Culet.trim_stats and Culet::Trim. */
#pragma once

#include <ruby.h>

/* Defines the methods. May raise. */
void culet_init_trim(VALUE culet);
