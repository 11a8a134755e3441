/* feature_index/require.h - `require` with the index of the load path. */
#pragma once

#include <ruby.h>

/* Defines the methods of Culet::Require. */
void culet_init_require(VALUE culet);
