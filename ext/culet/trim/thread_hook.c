#include "trim/thread_hook.h"

#include <ruby.h>

#include <ruby/debug.h>
#include <stdatomic.h>

#include "common/vm_lock.h"

static culet_thread_hook *hook;
static VALUE tracepoint;
static _Atomic int enabled;
static unsigned current_round;
static _Thread_local unsigned last_round; /* the last round in which this thread ran the hook */

static void at_allocation(VALUE unused, void *data)
{
    if (last_round == current_round)
        return;
    last_round = current_round;
    hook();
}

void culet_thread_hook_prepare(culet_thread_hook *what)
{
    hook = what;
    tracepoint = rb_tracepoint_new(Qnil, RUBY_INTERNAL_EVENT_NEWOBJ, at_allocation, NULL);
    rb_gc_register_mark_object(tracepoint);
}

void culet_thread_hook_enable(void)
{
    if (enabled || !culet_in_main_ractor())
        return;
    last_round = ++current_round;
    enabled = 1;
    rb_tracepoint_enable(tracepoint);
}

void culet_thread_hook_disable(void)
{
    if (!enabled || !culet_in_main_ractor())
        return;
    rb_tracepoint_disable(tracepoint);
    enabled = 0;
}

int culet_thread_hook_enabled(void)
{
    return enabled;
}
