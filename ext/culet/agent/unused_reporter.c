/* The extension does not contain the code that finds unused code, and most processes do not load it. */
#include "agent/unused_reporter.h"

static VALUE reporter = Qnil;

VALUE culet_unused_reporter(void)
{
    return reporter;
}

/* Culet::Agent.unused_reporter = object */
static VALUE set_reporter(VALUE self, VALUE object)
{
    reporter = object;
    return object;
}

void culet_init_unused_reporter(VALUE culet)
{
    rb_gc_register_address(&reporter);
    rb_define_singleton_method(rb_define_module_under(culet, "Agent"), "unused_reporter=", set_reporter, 1);
}
