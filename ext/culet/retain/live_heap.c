#include "retain/live_heap.h"

#include "common/values.h"
#include "retain/internals.h"

uint32_t culet_live_id(const struct culet_live *live, VALUE object)
{
    return RB_SPECIAL_CONST_P(object) ? CULET_NO_ID : culet_heap_index_id(&live->index, (uintptr_t)object);
}

static bool has_permanent_name(VALUE class)
{
    VALUE name = rb_mod_name(class);

    return RB_TYPE_P(name, T_STRING) && culet_is_constant_path(RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
}

bool culet_live_is_named(struct culet_live *live, VALUE object)
{
    uint32_t id = culet_live_id(live, object);
    int type;
    bool named;

    if (id == CULET_NO_ID)
        return false;
    type = RB_BUILTIN_TYPE(object);
    if (type != T_CLASS && type != T_MODULE)
        return false;
    if (culet_bits_set(&live->sets[LIVE_JUDGED], id))
        return culet_bits_has(&live->sets[LIVE_NAMED], id);
    if (culet_live_is_singleton(object))
        named = culet_live_is_named(live, culet_internals_attached(object));
    else
        named = has_permanent_name(object);
    if (named)
        (void)culet_bits_set(&live->sets[LIVE_NAMED], id);
    return named;
}

bool culet_live_is_singleton(VALUE class)
{
    return RB_TYPE_P(class, T_CLASS) && RB_FL_TEST_RAW(class, RUBY_FL_SINGLETON);
}

void culet_live_meet_class(struct culet_live *live, VALUE class)
{
    while (culet_live_is_singleton(class))
        class = culet_internals_attached(class);
    if (!culet_bits_set(&live->sets[LIVE_DEFERRED], culet_live_id(live, class)))
        (void)culet_values_add(live->graph.memory, &live->met, class);
}

bool culet_live_is_finalizer(VALUE object)
{
    return RB_BUILTIN_TYPE(object) == T_ARRAY && RBASIC(object)->klass == 0 && RARRAY_LEN(object) > 0 &&
           rb_obj_is_proc(RARRAY_AREF(object, RARRAY_LEN(object) - 1));
}

struct constant {
    VALUE class, name;
};

static VALUE read_constant(VALUE data)
{
    const struct constant *constant = (const struct constant *)data;
    ID name = rb_to_id(constant->name);

    if (!NIL_P(rb_autoload_p(constant->class, name)) || !rb_const_defined_at(constant->class, name))
        return Qundef;
    return rb_const_get_at(constant->class, name);
}

VALUE culet_live_constant(VALUE class, VALUE name)
{
    struct constant constant = {class, name};

    return culet_try(read_constant, (VALUE)&constant);
}
