#include "common/buffer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/pages.h"

void *culet_buffer_reserve(struct culet_buffer *buffer, size_t length)
{
    char *bytes =
        buffer->failed ? NULL : culet_pages_reserve(buffer->bytes, &buffer->capacity, buffer->length + length);

    if (bytes == NULL) {
        buffer->failed = 1;
        return NULL;
    }
    buffer->bytes = bytes;
    buffer->length += length;
    return bytes + buffer->length - length;
}

void culet_buffer_add(struct culet_buffer *buffer, const void *bytes, size_t length)
{
    void *capacity = culet_buffer_reserve(buffer, length);

    if (capacity != NULL && length > 0)
        memcpy(capacity, bytes, length);
}

void culet_buffer_text(struct culet_buffer *buffer, const char *text)
{
    culet_buffer_add(buffer, text, strlen(text));
}

void culet_buffer_format(struct culet_buffer *buffer, const char *format, ...)
{
    char line[512];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (length < 0)
        buffer->failed = 1;
    else
        culet_buffer_add(buffer, line, (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1);
}

void culet_buffer_comma(struct culet_buffer *buffer)
{
    if (buffer->length > 0 && strchr("[{", buffer->bytes[buffer->length - 1]) == NULL)
        culet_buffer_text(buffer, ",");
}

void culet_buffer_json_string(struct culet_buffer *buffer, const char *bytes, size_t length)
{
    culet_buffer_text(buffer, "\"");
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (byte < 0x20 || byte == 0x7f)
            culet_buffer_format(buffer, "\\u%04x", byte);
        else if (byte == '"' || byte == '\\')
            culet_buffer_format(buffer, "\\%c", byte);
        else
            culet_buffer_add(buffer, &byte, 1);
    }
    culet_buffer_text(buffer, "\"");
}

static void add_ruby_string(struct culet_buffer *buffer, VALUE string)
{
    culet_buffer_json_string(buffer, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
    RB_GC_GUARD(string);
}

static void add_key(struct culet_buffer *buffer, VALUE key)
{
    add_ruby_string(buffer, rb_obj_as_string(key));
    culet_buffer_text(buffer, ":");
}

static int add_member(VALUE key, VALUE value, VALUE data)
{
    struct culet_buffer *buffer = (struct culet_buffer *)data;

    culet_buffer_comma(buffer);
    add_key(buffer, key);
    culet_buffer_json(buffer, value);
    return ST_CONTINUE;
}

void culet_buffer_json_members(struct culet_buffer *buffer, VALUE hash)
{
    rb_hash_foreach(hash, add_member, (VALUE)buffer);
}

static void add_array(struct culet_buffer *buffer, VALUE array)
{
    culet_buffer_text(buffer, "[");
    for (long i = 0; i < RARRAY_LEN(array); i++) {
        culet_buffer_comma(buffer);
        culet_buffer_json(buffer, RARRAY_AREF(array, i));
    }
    culet_buffer_text(buffer, "]");
}

static void add_hash(struct culet_buffer *buffer, VALUE hash)
{
    culet_buffer_text(buffer, "{");
    culet_buffer_json_members(buffer, hash);
    culet_buffer_text(buffer, "}");
}

static void add_float(struct culet_buffer *buffer, double number)
{
    if (isfinite(number))
        culet_buffer_format(buffer, "%.17g", number);
    else
        culet_buffer_text(buffer, "null"); /* JSON has no infinity and no NaN */
}

void culet_buffer_json(struct culet_buffer *buffer, VALUE value)
{
    switch (rb_type(value)) {
    case T_NIL:
        culet_buffer_text(buffer, "null");
        break;
    case T_TRUE:
        culet_buffer_text(buffer, "true");
        break;
    case T_FALSE:
        culet_buffer_text(buffer, "false");
        break;
    case T_FLOAT:
        add_float(buffer, NUM2DBL(value));
        break;
    case T_FIXNUM:
    case T_BIGNUM: {
        VALUE digits = rb_obj_as_string(value);
        culet_buffer_add(buffer, RSTRING_PTR(digits), (size_t)RSTRING_LEN(digits));
        RB_GC_GUARD(digits);
        break;
    }
    case T_SYMBOL:
        add_ruby_string(buffer, rb_sym2str(value));
        break;
    case T_STRING:
        add_ruby_string(buffer, value);
        break;
    case T_ARRAY:
        add_array(buffer, value);
        break;
    case T_HASH:
        add_hash(buffer, value);
        break;
    default:
        add_ruby_string(buffer, rb_class_name(CLASS_OF(value)));
        break;
    }
}

void culet_buffer_free(struct culet_buffer *buffer)
{
    if (buffer->bytes != NULL)
        munmap(buffer->bytes, buffer->capacity);
    *buffer = (struct culet_buffer){NULL, 0, 0, 0};
}
