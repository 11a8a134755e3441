/* feature_index/feature_index.h - Culet::FeatureIndex, the index as a Ruby class. */
#ifndef CULET_FEATURE_INDEX_H
#define CULET_FEATURE_INDEX_H

#include <ruby.h>

void culet_init_feature_index(VALUE culet);

#endif
