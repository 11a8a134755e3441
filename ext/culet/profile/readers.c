#include "profile/readers.h"

#include <ruby.h>
#include <stdatomic.h>
#include <time.h>

#define PAUSE_NANOSECONDS 20000 /* as long as a sample takes */

static _Atomic unsigned readers;
static _Atomic bool auto_compacts;

bool culet_readers_begin(void)
{
    if (atomic_load(&auto_compacts))
        return false;
    atomic_fetch_add(&readers, 1);
    if (!rb_during_gc())
        return true;
    atomic_fetch_sub(&readers, 1);
    return false;
}

void culet_readers_end(void)
{
    atomic_fetch_sub(&readers, 1);
}

/* Ruby's flag of a running collection is no atomic variable. */
void culet_readers_wait(void)
{
    const struct timespec pause = {0, PAUSE_NANOSECONDS};

    atomic_thread_fence(memory_order_seq_cst);
    while (atomic_load(&readers) > 0)
        (void)nanosleep(&pause, NULL);
}

void culet_readers_forget(void)
{
    atomic_store(&readers, 0);
}

/* ---- GC.auto_compact ---- */

/* In front of GC.auto_compact=. */
static VALUE set_auto_compact(VALUE self, VALUE value)
{
    VALUE result;

    if (RTEST(value)) {
        atomic_store(&auto_compacts, true);
        culet_readers_wait();
    }
    result = rb_call_super(1, &value);
    atomic_store(&auto_compacts, RTEST(rb_funcall(self, rb_intern("auto_compact"), 0)));
    return result;
}

void culet_readers_prepare(void)
{
    VALUE module;

    if (!rb_respond_to(rb_mGC, rb_intern("auto_compact=")))
        return;
    module = rb_module_new();
    rb_gc_register_mark_object(module);
    rb_define_method(module, "auto_compact=", set_auto_compact, 1);
    rb_prepend_module(rb_singleton_class(rb_mGC), module);
    atomic_store(&auto_compacts, RTEST(rb_funcall(rb_mGC, rb_intern("auto_compact"), 0)));
}
