/*
 * comparison/heap_page.h - what the first word of a slot of Ruby's heap says, and where slots are.
 *
 * The type (five bits), freezing, and the marks of old objects are at the same places from Ruby 2.7 to 4.0
 * (include/ruby/internal/fl_type.h and value_type.h); T_IMEMO's kinds that are named here have the same numbers in all of
 * them (internal/imemo.h), but for one number that is a cache's up to 3.4.
 */
#ifndef CULET_COMPARISON_HEAP_PAGE_H
#define CULET_COMPARISON_HEAP_PAGE_H

#include <stddef.h>
#include <stdint.h>

#define RUBY_SLOT_TYPE_MASK 0x1f
#define RUBY_SLOT_NONE 0
#define RUBY_SLOT_CLASS 0x02
#define RUBY_SLOT_MODULE 0x03
#define RUBY_SLOT_STRING 0x05
#define RUBY_SLOT_HASH 0x08
#define RUBY_SLOT_DATA 0x0c
#define RUBY_SLOT_IMEMO 0x1a
#define RUBY_SLOT_ICLASS 0x1c
#define RUBY_SLOT_ZOMBIE 0x1d
#define RUBY_SLOT_MOVED 0x1e
#define RUBY_SLOT_FROZEN (1U << 11)
/*
 * Two bits of age up to Ruby 3.2, where both stand for old; later the lower one alone does, and on Ruby 4.0 the upper one is
 * set in all typed objects of extensions (RUBY_SLOT_DATA).
 */
#define RUBY_SLOT_AGE_MASK 0x60
#define RUBY_SLOT_PROMOTED 0x20
/* A string's: whether all of it is ASCII, valid, or broken in its encoding; looked for when it is first needed. */
#define RUBY_SLOT_CODE_RANGE_MASK (3U << 20)
/* Which instance variables there are, since Ruby 3.2. */
#define RUBY_SLOT_SHAPE_MASK 0xffffffff00000000U

/* A heap page of Ruby's, as Culet::Cow::Comparison packs it. */
struct comparison_heap_page {
  uint64_t address, slot_bytes, first_slot, slots; /* first_slot: bytes from the page's start */
};

/* Whether an object is there. */
static inline int
ruby_slot_is_live(uint64_t flags)
{
  uint64_t type = flags & RUBY_SLOT_TYPE_MASK;

  return type != RUBY_SLOT_NONE && type != RUBY_SLOT_MOVED && type != RUBY_SLOT_ZOMBIE;
}

/* Which of the interpreter's own kinds of object a T_IMEMO is. */
static inline unsigned
ruby_slot_imemo_kind(uint64_t flags)
{
  return flags >> 12 & 0xf;
}

/* Whether only the interpreter writes it: code, method entries, what calls found last. */
static inline int
ruby_slot_is_code(uint64_t flags)
{
  enum { REFINEMENTS = 1, METHOD_ENTRY = 6, ISEQ = 7, FIRST_CACHE = 9, FIELDS = 13 };
  unsigned kind = ruby_slot_imemo_kind(flags);

  if ((flags & RUBY_SLOT_TYPE_MASK) != RUBY_SLOT_IMEMO) return 0;
  /* On Ruby 4.0 instance variables of what is no T_OBJECT, with a shape; up to 3.4 a constant that was found, without. */
  if (kind == FIELDS) return (flags & RUBY_SLOT_SHAPE_MASK) == 0;
  return kind >= FIRST_CACHE || kind == ISEQ || kind == METHOD_ENTRY || kind == REFINEMENTS;
}

/* The page that has an address, of `count` in the order of addresses, each `page_bytes` long; NULL where there is none. */
static inline const struct comparison_heap_page *
culet_heap_page_at(const struct comparison_heap_page *pages, size_t count, uint64_t page_bytes, uint64_t address)
{
  size_t low = 0, high = count;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (pages[middle].address <= address) low = middle + 1;
    else high = middle;
  }
  return low > 0 && address - pages[low - 1].address < page_bytes ? &pages[low - 1] : NULL;
}

#endif
