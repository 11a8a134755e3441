/* common/values.h - Symbols, Hashes with Symbols as keys, calls that may raise, and texts that are cut. */
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

/* Bytes of the start of a UTF-8 text that fits in `most` bytes and ends with a character. */
static inline size_t culet_fitting_bytes(const char *text, size_t length, size_t most)
{
    if (length <= most)
        return length;
    for (length = most; length > most - 3 && (text[length] & 0xc0) == 0x80; length--)
        continue;
    return length;
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
