/* boot.h - the native parts of modules that nothing else in C calls. */
#pragma once

#include <ruby.h>

void culet_init_feature_index(VALUE culet); /* Culet::FeatureIndex, the index as a Ruby class */
void culet_init_require(VALUE culet);       /* Culet::Require, `require` with the index of the load path */
void culet_init_unused(VALUE culet);        /* Culet::Unused: the lines that ran, and the existing code */
