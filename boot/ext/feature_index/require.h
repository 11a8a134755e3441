/* feature_index/require.h - `require` with the index of the load path. */
#ifndef CULET_FEATURE_INDEX_REQUIRE_H
#define CULET_FEATURE_INDEX_REQUIRE_H

#include <ruby.h>

/* Defines the methods of Culet::Require. */
void culet_init_require(VALUE culet);

#endif
