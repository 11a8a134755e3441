/* ruby_slot.h - the first word of a slot in Ruby's heap, for readers of another process's memory.
 *
 * Type, frozen bit and age bits have the same places in Ruby 2.7 to 4.1 (include/ruby/internal/value_type.h,
 * fl_type.h). The kinds of T_IMEMO named here have the same numbers in all of these versions (internal/imemo.h),
 * except FIELDS, which is a constant cache up to 3.4. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Types: the low five bits. */
#define RUBY_SLOT_TYPE_MASK 0x1f
#define RUBY_SLOT_NONE 0x00
#define RUBY_SLOT_CLASS 0x02
#define RUBY_SLOT_MODULE 0x03
#define RUBY_SLOT_STRING 0x05
#define RUBY_SLOT_HASH 0x08
#define RUBY_SLOT_DATA 0x0c
#define RUBY_SLOT_IMEMO 0x1a
#define RUBY_SLOT_ICLASS 0x1c
#define RUBY_SLOT_ZOMBIE 0x1d
#define RUBY_SLOT_MOVED 0x1e

/* Flags. Up to Ruby 3.2 two age bits, both set in old objects. Later the lower bit alone marks old objects, and Ruby
 * 4.0 uses the upper one in typed T_DATA. */
#define RUBY_SLOT_AGE_MASK 0x60
#define RUBY_SLOT_PROMOTED 0x20
#define RUBY_SLOT_UPPER_AGE 0x40
/* Up to Ruby 3.2 more than one of so many live slots has the upper bit set: objects that survived two collections. */
#define RUBY_SLOT_UPPER_SHARE 100
#define RUBY_SLOT_FROZEN (1U << 11)
/* Of a string: its code range (ASCII only, valid or broken), cached on first use. */
#define RUBY_SLOT_CODE_RANGE_MASK (3U << 20)
/* The shape: which instance variables the object has, since Ruby 3.2. */
#define RUBY_SLOT_SHAPE_MASK 0xffffffff00000000U

/* Kinds of T_IMEMO. */
enum ruby_slot_imemo {
    RUBY_SLOT_IMEMO_CREF = 1,
    RUBY_SLOT_IMEMO_METHOD_ENTRY = 6,
    RUBY_SLOT_IMEMO_ISEQ = 7,
    RUBY_SLOT_IMEMO_FIRST_CACHE = 9,
    RUBY_SLOT_IMEMO_FIELDS = 13
};

static inline unsigned ruby_slot_type(uint64_t flags)
{
    return flags & RUBY_SLOT_TYPE_MASK;
}

/* Whether the slot holds an object. */
static inline bool ruby_slot_is_live(uint64_t flags)
{
    unsigned type = ruby_slot_type(flags);

    return type != RUBY_SLOT_NONE && type != RUBY_SLOT_MOVED && type != RUBY_SLOT_ZOMBIE;
}

/* Whether the upper age bit is set, in an object other than a T_DATA, where Ruby 4.0 uses it for something else. */
static inline bool ruby_slot_has_upper_age(uint64_t flags)
{
    return (flags & RUBY_SLOT_UPPER_AGE) != 0 && ruby_slot_type(flags) != RUBY_SLOT_DATA;
}

/* The bits that are all set in old objects. live: the number of live slots; upper: of those with the upper age bit. */
static inline uint64_t ruby_slot_old_mask(uint64_t live, uint64_t upper)
{
    return upper * RUBY_SLOT_UPPER_SHARE > live ? RUBY_SLOT_AGE_MASK : RUBY_SLOT_PROMOTED;
}

static inline unsigned ruby_slot_imemo_kind(uint64_t flags)
{
    return flags >> 12 & 0xf;
}

/* Whether only the interpreter writes the object: code, method entries, caches of calls. */
static inline bool ruby_slot_is_code(uint64_t flags)
{
    unsigned kind = ruby_slot_imemo_kind(flags);

    if (ruby_slot_type(flags) != RUBY_SLOT_IMEMO)
        return false;
    /* From 4.0 on the instance variables of an object that is no T_OBJECT, with a shape; up to 3.4 a constant cache. */
    if (kind == RUBY_SLOT_IMEMO_FIELDS)
        return (flags & RUBY_SLOT_SHAPE_MASK) == 0;
    return kind >= RUBY_SLOT_IMEMO_FIRST_CACHE || kind == RUBY_SLOT_IMEMO_ISEQ ||
           kind == RUBY_SLOT_IMEMO_METHOD_ENTRY || kind == RUBY_SLOT_IMEMO_CREF;
}
