#include "internals/code.h"

#include <ruby/debug.h>
#include <string.h>

#include "common/heap_walk.h"
#include "common/imemo.h"
#include "reader/layouts/ruby_slot.h"

int culet_code_is(VALUE object)
{
    VALUE flags = RBASIC(object)->flags;
    const char *name = (flags & RUBY_T_MASK) == T_IMEMO ? culet_imemo_name(culet_imemo_kind(flags)) : NULL;

    return name != NULL && strcmp(name, "iseq") == 0;
}

VALUE
culet_code_path(VALUE object, int *eval)
{
    *eval = NIL_P(rb_profile_frame_absolute_path(object));
    return rb_profile_frame_path(object);
}

struct visit {
    void (*function)(VALUE object, void *data);
    void *data;
};

static int visit_run(void *start, void *past, size_t slot_bytes, void *data)
{
    struct visit *visit = data;

    for (char *slot = start; slot < (char *)past; slot += slot_bytes)
        if (ruby_slot_is_live(RBASIC((VALUE)slot)->flags))
            visit->function((VALUE)slot, visit->data);
    return 0;
}

int culet_code_walk(void (*function)(VALUE object, void *data), void *data)
{
    struct visit visit = {function, data};
    int failure;

    if (!culet_heap_walk_is_possible())
        return 0;
    failure = culet_heap_walk(visit_run, &visit);
    if (failure)
        rb_jump_tag(failure);
    return 1;
}

size_t culet_code_bytes(VALUE object)
{
    static culet_heap_memsize_function *memsize;

    if (memsize == NULL)
        memsize = culet_heap_memsize();
    return memsize != NULL && culet_heap_has_size(object) ? memsize(object) : 0;
}
