/* buffer.h - growing arrays and byte buffers. Out of memory ends the program with a message. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct culet_buffer {
    unsigned char *bytes;
    size_t length;
    size_t room;
};

/* Allocates `count` zeroed items of `bytes` each. */
void *culet_new(size_t count, size_t bytes);

/* Grows an array from *room to at least `wanted` items, by doubling, and leaves the new ones untouched. */
void *culet_grow(void *items, size_t *room, size_t wanted, size_t bytes);

/* The new last item of an array, of which `count` items are in use and `room` allocated. */
#define CULET_APPEND(items, count, room)                                                                               \
    (*({                                                                                                               \
        (items) = culet_grow((items), &(room), (count) + 1, sizeof *(items));                                          \
        &(items)[(count)++];                                                                                           \
    }))

/* Makes room for `bytes` more and returns where they go. The length stays. */
unsigned char *culet_buffer_room(struct culet_buffer *buffer, size_t bytes);

void culet_buffer_add(struct culet_buffer *buffer, const void *bytes, size_t length);
void culet_buffer_byte(struct culet_buffer *buffer, unsigned char byte);

/* Adds a number as a varint (LEB128). */
void culet_buffer_varint(struct culet_buffer *buffer, uint64_t number);

/* Adds formatted text, without a NUL. */
void culet_buffer_print(struct culet_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Empties the buffer and frees its memory. */
void culet_buffer_free(struct culet_buffer *buffer);

/* Runs of equal values: for each its length and its value, as varints. Initialize `to` and zero. */
struct culet_runs {
    struct culet_buffer *to;
    uint64_t length, value; /* of the current run, which is not in the buffer yet */
};

/* Adds a value so many times, at least once. */
void culet_runs_add(struct culet_runs *runs, uint64_t value, uint64_t times);

/* Adds the current run to the buffer. */
void culet_runs_end(struct culet_runs *runs);
