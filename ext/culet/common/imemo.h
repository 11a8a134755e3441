/* common/imemo.h - the kinds of Ruby's internal objects (T_IMEMO), which its headers do not have. */
#pragma once

#include <ruby.h>

/* More than any Ruby has. */
#define CULET_IMEMO_KINDS 16

/* The number of the kind, from the flags of a T_IMEMO. */
static inline unsigned culet_imemo_kind(VALUE flags)
{
    return (unsigned)(flags >> RUBY_FL_USHIFT) % CULET_IMEMO_KINDS;
}

/* Ruby's name of a kind that an object has, such as "env"; NULL where this Ruby does not tell. */
const char *culet_imemo_name(unsigned kind);
