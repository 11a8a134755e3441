/*
 * Loops over the words of pages, which would take Ruby a hundred times as long. They know nothing of where the bytes are
 * from; a word is as long as a pointer, and what is left behind the last whole one is not looked at.
 */
#include "words.h"

#include <stdint.h>
#include <string.h>

#define WORD sizeof(uint64_t)
/* What is alike is mostly so for long; so many words are compared at once. */
#define STRETCH 16

/* Where malloc puts what it gives out. */
#define ALIGNMENT 16

static uint64_t
word_at(const char *bytes, long index)
{
  uint64_t word;

  memcpy(&word, bytes + (size_t)index * WORD, WORD);
  return word;
}

static long
words_of(VALUE bytes)
{
  return RSTRING_LEN(bytes) / (long)WORD;
}

/* Culet::Words.differing(one, other): Array of the indexes of words that are not the same, as far as both Strings go. */
static VALUE
differing(VALUE self, VALUE one, VALUE other)
{
  VALUE found = rb_ary_new();
  long count, index = 0;

  StringValue(one);
  StringValue(other);
  count = words_of(one) < words_of(other) ? words_of(one) : words_of(other);
  while (index < count) {
    const char *a = RSTRING_PTR(one), *b = RSTRING_PTR(other);
    size_t at = (size_t)index * WORD;
    if (count - index >= STRETCH && memcmp(a + at, b + at, STRETCH * WORD) == 0) {
      index += STRETCH;
      continue;
    }
    for (long end = count - index < STRETCH ? count : index + STRETCH; index < end; index++)
      if (word_at(a, index) != word_at(b, index)) rb_ary_push(found, LONG2NUM(index));
  }
  RB_GC_GUARD(one);
  RB_GC_GUARD(other);
  return found;
}

/* Whether one of the ranges, `count` pairs of first and past in ascending order, has it. */
static int
is_in(const char *ranges, long count, uint64_t word)
{
  long low = 0, high = count;

  while (low < high) {
    long middle = low + (high - low) / 2;
    if (word_at(ranges, 2 * middle + 1) > word) high = middle;
    else low = middle + 1;
  }
  return low < count && word_at(ranges, 2 * low) <= word;
}

/* Whether it can be an address of malloc's in one of the ranges. */
static int
is_wanted(const char *ranges, long count, uint64_t word)
{
  if (word % ALIGNMENT != 0 || count == 0) return 0;
  if (word < word_at(ranges, 0) || word >= word_at(ranges, 2 * count - 1)) return 0;
  return is_in(ranges, count, word);
}

/*
 * Culet::Words.within(bytes, ranges): Array of those that can be addresses of malloc's in one of the ranges: a String of two
 * words for each, first and past, in ascending order.
 */
static VALUE
within(VALUE self, VALUE bytes, VALUE ranges)
{
  VALUE found = rb_ary_new();
  long count, pairs;

  StringValue(bytes);
  StringValue(ranges);
  count = words_of(bytes);
  pairs = words_of(ranges) / 2;
  for (long index = 0; index < count; index++) {
    uint64_t word = word_at(RSTRING_PTR(bytes), index);
    if (is_wanted(RSTRING_PTR(ranges), pairs, word)) rb_ary_push(found, ULL2NUM(word));
  }
  RB_GC_GUARD(bytes);
  RB_GC_GUARD(ranges);
  return found;
}

/*
 * Culet::Words.in_slots(bytes, first, slot, ranges): the same of memory that is divided into slots, in words the first one's
 * place and the length of each: Array of word, the lower half of its slot's first word, its slot's second word, and so on.
 */
static VALUE
in_slots(VALUE self, VALUE bytes, VALUE first, VALUE slot, VALUE ranges)
{
  VALUE found = rb_ary_new();
  long start = NUM2LONG(first), length = NUM2LONG(slot), count, pairs;

  StringValue(bytes);
  StringValue(ranges);
  count = words_of(bytes);
  pairs = words_of(ranges) / 2;
  if (start < 0 || length < 2) rb_raise(rb_eArgError, "no slots");
  for (long at = start; at <= count - length; at += length) {
    for (long index = at; index < at + length; index++) {
      uint64_t word = word_at(RSTRING_PTR(bytes), index);
      if (!is_wanted(RSTRING_PTR(ranges), pairs, word)) continue;
      rb_ary_push(found, ULL2NUM(word));
      rb_ary_push(found, ULL2NUM(word_at(RSTRING_PTR(bytes), at) & UINT32_MAX));
      rb_ary_push(found, ULL2NUM(word_at(RSTRING_PTR(bytes), at + 1)));
    }
  }
  RB_GC_GUARD(bytes);
  RB_GC_GUARD(ranges);
  return found;
}

void
culet_init_words(VALUE culet)
{
  VALUE words = rb_define_module_under(culet, "Words");

  rb_define_singleton_method(words, "differing", differing, 2);
  rb_define_singleton_method(words, "within", within, 2);
  rb_define_singleton_method(words, "in_slots", in_slots, 4);
}
