/* common/values.h - Symbols, and Hashes with Symbols as keys. */
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
