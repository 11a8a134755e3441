#include "base/buffer.h"

#include "base/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void no_memory(size_t bytes)
{
    culet_fail("out of memory for %zu kB of bookkeeping; free some memory, or raise the limit (ulimit -v)",
               bytes / 1000);
}

void *culet_new(size_t count, size_t bytes)
{
    void *items = calloc(count ? count : 1, bytes);

    if (!items)
        no_memory(count * bytes);
    return items;
}

void *culet_grow(void *items, size_t *room, size_t wanted, size_t bytes)
{
    size_t larger = *room ? *room : 16, total;

    if (wanted <= *room)
        return items;
    while (larger < wanted)
        larger *= 2;
    if (__builtin_mul_overflow(larger, bytes, &total))
        no_memory(SIZE_MAX);
    char *grown = realloc(items, total);
    if (!grown)
        no_memory(total);
    *room = larger;
    return grown;
}

unsigned char *culet_buffer_room(struct culet_buffer *buffer, size_t bytes)
{
    buffer->bytes = culet_grow(buffer->bytes, &buffer->room, buffer->length + bytes, 1);
    return buffer->bytes + buffer->length;
}

void culet_buffer_add(struct culet_buffer *buffer, const void *bytes, size_t length)
{
    memcpy(culet_buffer_room(buffer, length), bytes, length);
    buffer->length += length;
}

void culet_buffer_byte(struct culet_buffer *buffer, unsigned char byte)
{
    *culet_buffer_room(buffer, 1) = byte;
    buffer->length++;
}

void culet_buffer_varint(struct culet_buffer *buffer, uint64_t number)
{
    unsigned char *at = culet_buffer_room(buffer, 10), *from = at;

    for (; number > 127; number >>= 7)
        *at++ = (unsigned char)(number | 128);
    *at++ = (unsigned char)number;
    buffer->length += (size_t)(at - from);
}

void culet_buffer_print(struct culet_buffer *buffer, const char *format, ...)
{
    va_list arguments, again;

    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length > 0) {
        vsnprintf((char *)culet_buffer_room(buffer, (size_t)length + 1), (size_t)length + 1, format, again);
        buffer->length += (size_t)length;
    }
    va_end(again);
}

void culet_buffer_free(struct culet_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct culet_buffer){0};
}

void culet_runs_end(struct culet_runs *runs)
{
    culet_buffer_varint(runs->to, runs->length);
    culet_buffer_varint(runs->to, runs->value);
    runs->length = 0;
}

void culet_runs_add(struct culet_runs *runs, uint64_t value, uint64_t times)
{
    if (runs->length && value != runs->value)
        culet_runs_end(runs);
    runs->value = value;
    runs->length += times;
}
