/* retain/internals.h - what Ruby's headers do not say of its internal objects (T_IMEMO) and flags. */
#pragma once

#include <ruby.h>

#include <stdbool.h>

enum culet_internal {
    INTERNAL_NONE = -1,
    INTERNAL_OTHER,
    INTERNAL_ENVIRONMENT,
    INTERNAL_METHOD,
    INTERNAL_CODE,
    INTERNAL_CALL_CACHE,
    INTERNAL_CONSTANT_CACHE
};

/* The kind of a T_IMEMO, by the name that Ruby has for it. */
enum culet_internal culet_internals_kind(VALUE internal);

/* The path of the file of a piece of code (T_IMEMO); 0: not known. */
VALUE culet_internals_code_path(VALUE code);

/* The first line of a piece of code; 0: not known. */
long culet_internals_code_line(VALUE code);

/* The code of a Proc's block; 0: it has none. */
VALUE culet_internals_proc_code(VALUE proc);

/* The object whose singleton class it is; 0: not known. */
VALUE culet_internals_attached(VALUE singleton);

/* Whether an object with these flags, no T_OBJECT, may have instance variables. */
static inline bool culet_internals_has_variables(VALUE flags)
{
#ifdef HAVE_VARIABLES_FLAG
    return (flags & RUBY_FL_EXIVAR) != 0;
#else
    return flags >> 32 != 0; /* the number of its shape; that without variables is 0 */
#endif
}
