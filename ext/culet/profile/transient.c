#include "profile/transient.h"

#include <ruby/version.h>

#include "common/heap_walk.h"

#if RUBY_API_VERSION_MAJOR == 3 && RUBY_API_VERSION_MINOR < 3

/* Ruby's headers define the flag of an array alone (internal/hash.h, struct.h, variable.h). */
#define HASH_IS_TRANSIENT RUBY_FL_USER14
#define STRUCT_IS_TRANSIENT RUBY_FL_USER3
#define OBJECT_IS_TRANSIENT RUBY_FL_USER13

static culet_heap_memsize_function *memsize; /* NULL: this Ruby does not tell */
static size_t slot_bytes;

void culet_transient_prepare(void)
{
    VALUE array = rb_ary_new_capa(0);

    memsize = culet_heap_memsize();
    slot_bytes = memsize != NULL ? memsize(array) : 0;
}

bool culet_transient_exists(void)
{
    return memsize != NULL;
}

static bool is_transient(VALUE object)
{
    VALUE flags = RBASIC(object)->flags;

    switch (RB_BUILTIN_TYPE(object)) {
    case T_ARRAY:
        return (flags & RUBY_FL_USER1) == 0 && (flags & CULET_ELEMENTS_SHARED) == 0 &&
               (flags & RARRAY_TRANSIENT_FLAG) != 0;
    case T_HASH:
        return (flags & HASH_IS_TRANSIENT) != 0;
    case T_STRUCT:
        return (flags & STRUCT_IS_TRANSIENT) != 0;
    case T_OBJECT:
        return (flags & ROBJECT_EMBED) == 0 && (flags & OBJECT_IS_TRANSIENT) != 0;
    default:
        return false;
    }
}

size_t culet_transient_bytes(VALUE object)
{
    size_t bytes = memsize != NULL && is_transient(object) ? memsize(object) : 0;

    return bytes > slot_bytes ? bytes - slot_bytes : 0;
}

#else

void culet_transient_prepare(void)
{
}

bool culet_transient_exists(void)
{
    return false;
}

size_t culet_transient_bytes(VALUE object)
{
    return 0;
}

#endif
