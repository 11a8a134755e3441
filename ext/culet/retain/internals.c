#include "retain/internals.h"

#include <string.h>

#include "common/active_malloc.h"
#include "common/imemo.h"

typedef VALUE code_function(VALUE code);

static enum culet_internal kind_of(const char *name)
{
    static const struct {
        const char *name;
        enum culet_internal kind;
    } kinds[] = {{"env", INTERNAL_ENVIRONMENT},
                 {"ment", INTERNAL_METHOD},
                 {"iseq", INTERNAL_CODE},
                 {"callcache", INTERNAL_CALL_CACHE},
                 {"constcache", INTERNAL_CONSTANT_CACHE}};

    for (size_t i = 0; name != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(name, kinds[i].name) == 0)
            return kinds[i].kind;
    return INTERNAL_OTHER;
}

enum culet_internal culet_internals_kind(VALUE internal)
{
    static int known[CULET_IMEMO_KINDS]; /* the kind + 1 */
    unsigned number = culet_imemo_kind(RBASIC(internal)->flags);

    if (known[number] == 0)
        known[number] = (int)kind_of(culet_imemo_name(number)) + 1;
    return (enum culet_internal)(known[number] - 1);
}

VALUE culet_internals_code_path(VALUE code)
{
    static code_function *path;

    if (path == NULL) {
        CULET_OF_ANY(code_function, function, "rb_iseq_path");
        path = function;
    }
    return path != NULL ? path(code) : 0;
}

long culet_internals_code_line(VALUE code)
{
    CULET_OF_ANY(code_function, first, "rb_iseq_first_lineno");
    VALUE number = first != NULL ? first(code) : Qnil;

    return RB_FIXNUM_P(number) ? FIX2LONG(number) : 0;
}

VALUE culet_internals_proc_code(VALUE proc)
{
    typedef void *function_type(VALUE proc_object, int *is_proc);
    CULET_OF_ANY(function_type, code, "rb_proc_get_iseq");
    int is_proc;

    return code != NULL ? (VALUE)code(proc, &is_proc) : 0;
}

VALUE culet_internals_attached(VALUE singleton)
{
#ifdef HAVE_RB_CLASS_ATTACHED_OBJECT
    return rb_class_attached_object(singleton);
#else
    return rb_attr_get(singleton, rb_intern("__attached__"));
#endif
}
