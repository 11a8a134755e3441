#include "common/heap_walk.h"

#include "common/active_malloc.h"
#include "common/vm_lock.h"

/* Not in Ruby's headers, and looked up, so that the extension loads into a Ruby without it. */
typedef void each_function(culet_heap_walk_function *function, void *data);

struct walk {
    each_function *each;
    culet_heap_walk_function *function;
    void *data;
};

struct call {
    void (*function)(void *data);
    void *data;
};

static VALUE call_it(VALUE data)
{
    struct call *call = (struct call *)data;

    call->function(call->data);
    return Qnil;
}

static void walk_slots(void *data)
{
    struct walk *walk = data;

    walk->each(walk->function, walk->data);
}

culet_heap_memsize_function *culet_heap_memsize(void)
{
    CULET_OF_ANY(culet_heap_memsize_function, function, "rb_obj_memsize_of");
    return function;
}

culet_heap_memsize_function *culet_heap_slot_size(void)
{
    CULET_OF_ANY(culet_heap_memsize_function, function, "rb_gc_obj_slot_size");
    return function;
}

int culet_heap_has_size(VALUE object)
{
    switch (RB_BUILTIN_TYPE(object)) {
    case T_DATA:
        return RTYPEDDATA_P(object) && RTYPEDDATA_TYPE(object) != NULL &&
               RTYPEDDATA_TYPE(object)->function.dsize != NULL;
    case T_OBJECT:
    case T_STRING:
    case T_REGEXP:
    case T_ARRAY:
    case T_HASH:
    case T_STRUCT:
    case T_BIGNUM:
    case T_FILE:
    case T_MATCH:
    case T_COMPLEX:
    case T_RATIONAL:
    case T_FLOAT:
    case T_SYMBOL:
    case T_IMEMO:
    case T_CLASS:
    case T_MODULE:
    case T_ICLASS:
        return 1;
    default:
        return 0;
    }
}

int culet_heap_walk_is_possible(void)
{
    return dlsym(RTLD_DEFAULT, "rb_objspace_each_objects") != NULL;
}

const char *culet_heap_walk_obstacle(void)
{
    if (!culet_heap_walk_is_possible() || culet_heap_memsize() == NULL)
        return "this Ruby does not support counting its objects";
    return culet_vm_several_ractors() ? "several Ractors run, and objects cannot be counted meanwhile" : NULL;
}

/* rb_gc_disable returns whether GC was disabled before. */
int culet_without_gc(void (*function)(void *data), void *data)
{
    struct call call = {function, data};
    int failure = 0;
    int was_off = RTEST(rb_gc_disable());

    rb_protect(call_it, (VALUE)&call, &failure);
    if (!was_off)
        rb_gc_enable();
    return failure;
}

int culet_heap_walk(culet_heap_walk_function *function, void *data)
{
    CULET_OF_ANY(each_function, each, "rb_objspace_each_objects");
    struct walk walk = {each, function, data};
    return culet_without_gc(walk_slots, &walk);
}
