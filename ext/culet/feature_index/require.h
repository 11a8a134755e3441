/*
 * feature_index/require.h - `require` that asks the index of the load path first.
 */
#ifndef CULET_FEATURE_INDEX_REQUIRE_H
#define CULET_FEATURE_INDEX_REQUIRE_H

#include <ruby.h>

/* Defines Culet::Require's methods. */
void culet_init_require(VALUE culet);

#endif
