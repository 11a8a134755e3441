#include "agent/text.h" /* ruby.h defines _GNU_SOURCE, hence first */

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_ROOM ((size_t)64 << 10) /* a whole number of pages of any size */

static int
grow(struct culet_text *text, size_t length)
{
  size_t room = text->room == 0 ? FIRST_ROOM : text->room;
  void *bytes;

  while (room < length) room *= 2;
  if (room == text->room) return 1;
  if (text->bytes == NULL)
    bytes = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  else
    bytes = mremap(text->bytes, text->room, room, MREMAP_MAYMOVE);
  if (bytes == MAP_FAILED) return 0;
  text->bytes = bytes;
  text->room = room;
  return 1;
}

void *
culet_text_extend(struct culet_text *text, size_t length)
{
  if (text->failed || !grow(text, text->length + length)) {
    text->failed = 1;
    return NULL;
  }
  text->length += length;
  return text->bytes + text->length - length;
}

void
culet_text_add(struct culet_text *text, const void *bytes, size_t length)
{
  void *room = culet_text_extend(text, length);

  if (room != NULL && length > 0) memcpy(room, bytes, length);
}

void
culet_text_words(struct culet_text *text, const char *words)
{
  culet_text_add(text, words, strlen(words));
}

void
culet_text_format(struct culet_text *text, const char *format, ...)
{
  char line[512];
  va_list arguments;
  int length;

  va_start(arguments, format);
  length = vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  if (length < 0) text->failed = 1;
  else culet_text_add(text, line, (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1);
}

void
culet_text_string(struct culet_text *text, const char *bytes, size_t length)
{
  culet_text_words(text, "\"");
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)bytes[i];
    if (byte < 0x20 || byte == 0x7f) culet_text_format(text, "\\u%04x", byte);
    else if (byte == '"' || byte == '\\') culet_text_format(text, "\\%c", byte);
    else culet_text_add(text, &byte, 1);
  }
  culet_text_words(text, "\"");
}

static void
add_ruby_string(struct culet_text *text, VALUE string)
{
  culet_text_string(text, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
  RB_GC_GUARD(string);
}

static void
add_key(struct culet_text *text, VALUE key)
{
  add_ruby_string(text, rb_obj_as_string(key));
  culet_text_words(text, ":");
}

static int
add_member(VALUE key, VALUE value, VALUE data)
{
  struct culet_text *text = (struct culet_text *)data;

  culet_text_words(text, ",");
  add_key(text, key);
  culet_text_value(text, value);
  return ST_CONTINUE;
}

void
culet_text_members(struct culet_text *text, VALUE hash)
{
  rb_hash_foreach(hash, add_member, (VALUE)text);
}

static void
add_array(struct culet_text *text, VALUE array)
{
  culet_text_words(text, "[");
  for (long i = 0; i < RARRAY_LEN(array); i++) {
    if (i > 0) culet_text_words(text, ",");
    culet_text_value(text, RARRAY_AREF(array, i));
  }
  culet_text_words(text, "]");
}

/* The first member's comma is blanked: whether there is a first one is known behind it only. */
static void
add_hash(struct culet_text *text, VALUE hash)
{
  size_t start = text->length + 1;

  culet_text_words(text, "{");
  culet_text_members(text, hash);
  if (!text->failed && text->length > start) text->bytes[start] = ' ';
  culet_text_words(text, "}");
}

static void
add_float(struct culet_text *text, double number)
{
  if (isfinite(number)) culet_text_format(text, "%.17g", number);
  else culet_text_words(text, "null"); /* JSON has no word for it */
}

void
culet_text_value(struct culet_text *text, VALUE value)
{
  switch (rb_type(value)) {
    case T_NIL: culet_text_words(text, "null"); break;
    case T_TRUE: culet_text_words(text, "true"); break;
    case T_FALSE: culet_text_words(text, "false"); break;
    case T_FLOAT: add_float(text, NUM2DBL(value)); break;
    case T_FIXNUM:
    case T_BIGNUM: {
      VALUE digits = rb_obj_as_string(value);
      culet_text_add(text, RSTRING_PTR(digits), (size_t)RSTRING_LEN(digits));
      RB_GC_GUARD(digits);
      break;
    }
    case T_SYMBOL: add_ruby_string(text, rb_sym2str(value)); break;
    case T_STRING: add_ruby_string(text, value); break;
    case T_ARRAY: add_array(text, value); break;
    case T_HASH: add_hash(text, value); break;
    default: add_ruby_string(text, rb_class_name(CLASS_OF(value))); break;
  }
}

void
culet_text_free(struct culet_text *text)
{
  if (text->bytes != NULL) munmap(text->bytes, text->room);
  *text = (struct culet_text){NULL, 0, 0, 0};
}
