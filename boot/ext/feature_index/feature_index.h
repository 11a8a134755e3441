/* feature_index/feature_index.h - Culet::FeatureIndex, the index as a Ruby class. */
#pragma once

#include <ruby.h>

void culet_init_feature_index(VALUE culet);
