#include "common/vm_lock.h"

#include <ruby/ractor.h>

#include "common/active_malloc.h"

/* Not in Ruby's headers: the first with a barrier, the others up to Ruby 3.2. */
typedef VALUE with_barrier_function(VALUE (*function)(void *), void *data);
typedef void level_function(unsigned *level);

struct call {
    void (*function)(void *data);
    void *data;
};

static VALUE call_it(void *data)
{
    struct call *call = data;

    call->function(call->data);
    return Qnil;
}

static rb_ractor_local_key_t main_ractor; /* Qtrue there only */
static bool prepared;

void culet_main_ractor_prepare(void)
{
    if (prepared)
        return;
    prepared = true;
    main_ractor = rb_ractor_local_storage_value_newkey();
    rb_ractor_local_storage_value_set(main_ractor, Qtrue);
}

bool culet_in_main_ractor(void)
{
    return rb_ractor_local_storage_value(main_ractor) == Qtrue;
}

int culet_vm_several_ractors(void)
{
    ID ractor = rb_intern("Ractor");

    return rb_const_defined(rb_cObject, ractor) &&
           NUM2INT(rb_funcall(rb_const_get(rb_cObject, ractor), rb_intern("count"), 0)) > 1;
}

int culet_vm_lock_exists(void)
{
    return dlsym(RTLD_DEFAULT, "rb_vm_lock_with_barrier") != NULL ||
           (dlsym(RTLD_DEFAULT, "rb_vm_lock_enter_body") != NULL &&
            dlsym(RTLD_DEFAULT, "rb_vm_lock_leave_body") != NULL);
}

void culet_vm_locked(void (*function)(void *data), void *data)
{
    CULET_OF_ANY(with_barrier_function, with_barrier, "rb_vm_lock_with_barrier");
    CULET_OF_ANY(level_function, lock, "rb_vm_lock_enter_body");
    CULET_OF_ANY(level_function, unlock, "rb_vm_lock_leave_body");
    struct call call = {function, data};
    unsigned level = 0;

    if (with_barrier != NULL) {
        with_barrier(call_it, &call);
    } else if (lock != NULL && unlock != NULL) {
        lock(&level);
        function(data);
        unlock(&level);
    } else {
        function(data);
    }
}
