/* buffer.h - bytes that grow at their end. */
#ifndef CULET_BUFFER_H
#define CULET_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct culet_buffer {
    unsigned char *bytes;
    size_t length;
    size_t room;
};

/* Memory for `count` items of `bytes` each, zeroed; ends the program when there is none. */
void *culet_new(size_t count, size_t bytes);

/* Makes room for `wanted` items where *room are, by doubling; the old ones are kept, the new ones zeroed. */
void *culet_grow(void *items, size_t *room, size_t wanted, size_t bytes);

/* The same, but the new ones are not zeroed: memory is used once it is needed. */
void *culet_stretch(void *items, size_t *room, size_t wanted, size_t bytes);

/* Makes room for `bytes` more; returns where they go. The length stays. */
unsigned char *culet_buffer_room(struct culet_buffer *buffer, size_t bytes);

void culet_buffer_add(struct culet_buffer *buffer, const void *bytes, size_t length);
void culet_buffer_byte(struct culet_buffer *buffer, unsigned char byte);

/* Adds a number as varint (LEB128). */
void culet_buffer_varint(struct culet_buffer *buffer, uint64_t number);

/* Adds text as printf would. */
void culet_buffer_print(struct culet_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Empties it and frees what it held. */
void culet_buffer_free(struct culet_buffer *buffer);

#endif
