/* common/values.h - Symbols, Hashes with Symbols as keys, and calls that may raise. */
#pragma once

#include <ruby.h>
#include <stdint.h>

/* The Symbol with a name. */
static inline VALUE culet_symbol(const char *name)
{
    return ID2SYM(rb_intern(name));
}

static inline void culet_hash_set(VALUE hash, const char *name, VALUE value)
{
    rb_hash_aset(hash, culet_symbol(name), value);
}

static inline void culet_hash_set_number(VALUE hash, const char *name, uint64_t number)
{
    culet_hash_set(hash, name, ULL2NUM(number));
}

/* The function's value; Qundef if it raised: the exception is dropped. */
static inline VALUE culet_try(VALUE (*function)(VALUE data), VALUE data)
{
    int failure = 0;
    VALUE value = rb_protect(function, data, &failure);

    if (failure)
        rb_set_errinfo(Qnil);
    return failure ? Qundef : value;
}
