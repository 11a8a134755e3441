/* The second extension: what finds, measures and counts the code that a program loads. A program has it if it asks for it. */
#include <ruby.h>

#include "feature_index/feature_index.h"
#include "feature_index/require.h"
#include "recorder/recorder.h"
#include "unused/unused.h"

RUBY_FUNC_EXPORTED void Init_culet_boot(void)
{
    VALUE culet;

    rb_ext_ractor_safe(true);
    culet = rb_define_module("Culet");
    culet_init_feature_index(culet);
    culet_init_require(culet);
    culet_init_recorder(culet);
    culet_init_unused(culet);
}
