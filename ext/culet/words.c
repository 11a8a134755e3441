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

/*
 * Culet::Words.between(bytes, low, high): Array of index, word, index, word, ... of those that can be addresses of malloc's
 * from low to high.
 */
static VALUE
between(VALUE self, VALUE bytes, VALUE low, VALUE high)
{
  VALUE found = rb_ary_new();
  uint64_t least = NUM2ULL(low), most = NUM2ULL(high);
  long count;

  StringValue(bytes);
  count = words_of(bytes);
  for (long index = 0; index < count; index++) {
    uint64_t word = word_at(RSTRING_PTR(bytes), index);
    if (word < least || word > most || word % ALIGNMENT != 0) continue;
    rb_ary_push(found, LONG2NUM(index));
    rb_ary_push(found, ULL2NUM(word));
  }
  RB_GC_GUARD(bytes);
  return found;
}

void
culet_init_words(VALUE culet)
{
  VALUE words = rb_define_module_under(culet, "Words");

  rb_define_singleton_method(words, "differing", differing, 2);
  rb_define_singleton_method(words, "between", between, 3);
}
