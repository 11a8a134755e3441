#include "common/object_bytes.h"

#include <string.h>

#include "common/heap_walk.h"
#include "common/values.h"

static culet_heap_memsize_function *memsize;
static culet_heap_memsize_function *base_bytes; /* NULL: the slot's size */
static size_t vm_stack_bytes;                   /* of a thread; 0: not known */

void culet_object_bytes_prepare(void)
{
    VALUE parameters = rb_const_get(rb_const_get(rb_cObject, rb_intern("RubyVM")), rb_intern("DEFAULT_PARAMS"));
    VALUE bytes = rb_hash_aref(parameters, culet_symbol("thread_vm_stack_size"));

    memsize = culet_heap_memsize();
    base_bytes = culet_heap_slot_size();
    vm_stack_bytes = RB_INTEGER_TYPE_P(bytes) ? NUM2SIZET(bytes) : 0;
}

/* Bytes outside of the slot. */
static size_t bytes_beyond(VALUE object, size_t slot_bytes)
{
    size_t bytes = memsize(object);
    size_t base = base_bytes != NULL ? base_bytes(object) : slot_bytes;

    return bytes > base ? bytes - base : 0;
}

#if RUBY_API_VERSION_MAJOR == 3 && RUBY_API_VERSION_MINOR < 3

#if RUBY_API_VERSION_MINOR < 2
#define OBJECT_TRANSIENT RUBY_FL_USER13
#else
#define OBJECT_TRANSIENT RUBY_FL_USER2
#endif

/* Flags as in internal/{array,hash,struct,variable}.h. */
static bool is_transient(VALUE object)
{
    VALUE flags = RBASIC(object)->flags;

    switch (RB_BUILTIN_TYPE(object)) {
    case T_ARRAY:
        return (flags & (RUBY_FL_USER1 | CULET_ELEMENTS_SHARED)) == 0 &&
               (flags & RUBY_FL_USER13) != 0; /* not embedded */
    case T_OBJECT:
        return (flags & RUBY_FL_USER1) == 0 && (flags & OBJECT_TRANSIENT) != 0;
    case T_HASH:
        return (flags & RUBY_FL_USER12) != 0;
    case T_STRUCT:
        return (flags & RUBY_FL_USER3) != 0;
    default:
        return false;
    }
}

bool culet_transient_exists(void)
{
    return memsize != NULL;
}

#else

static bool is_transient(VALUE object)
{
    return false;
}

bool culet_transient_exists(void)
{
    return false;
}

#endif

size_t culet_transient_bytes(VALUE object)
{
    return memsize != NULL && is_transient(object) ? bytes_beyond(object, sizeof(VALUE[5])) : 0;
}

const char *culet_data_type_name(VALUE object)
{
    const char *name =
        RB_TYPE_P(object, T_DATA) && RTYPEDDATA_P(object) ? RTYPEDDATA_TYPE(object)->wrap_struct_name : NULL;

    return name != NULL ? name : "";
}

bool culet_is_thread(VALUE object)
{
    return strcmp(culet_data_type_name(object), "VM/thread") == 0;
}

/* A thread's size includes its VM stack, which is on the native stack (alloca in thread.c). */
struct culet_object_bytes culet_object_bytes(VALUE object, size_t slot_bytes)
{
    struct culet_object_bytes sizes = {.slot = slot_bytes};
    size_t bytes;

    if (!culet_heap_has_size(object))
        return sizes;
    sizes.measured = 1;
    bytes = bytes_beyond(object, slot_bytes);
    if (bytes > 0 && is_transient(object))
        sizes.transient = bytes;
    else
        sizes.malloc = bytes;
    if (sizes.malloc > 0 && sizes.malloc >= vm_stack_bytes && culet_is_thread(object)) {
        sizes.vm_stack = vm_stack_bytes;
        sizes.malloc -= vm_stack_bytes;
    }
    return sizes;
}
