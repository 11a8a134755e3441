/* profile/interned.h - a bounded table of texts with numbers, in a mapping of its own: names of types, label sets.
 *
 * Texts are kept in the form of the profile's stream. The table never forgets a text. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"

#define CULET_INTERNED_TEXTS 10240
#define CULET_INTERNED_BYTES ((size_t)4 << 20)

struct culet_interned_memory;

struct culet_interned {
    pthread_mutex_t lock;
    struct culet_interned_memory *memory; /* NULL: empty */
    uint32_t count;
    size_t length;
};

/* The lock is held during a fork by these. */
void culet_interned_lock(struct culet_interned *table);
void culet_interned_unlock(struct culet_interned *table);

/* The number of a text, from 1 on. A new text gets a number if there are fewer than `limit`, at most
 * CULET_INTERNED_TEXTS; otherwise, and without memory, 0. */
uint32_t culet_interned_number(struct culet_interned *table, const char *text, size_t length, uint32_t limit);

/* Copies the text of a number. Returns its length; 0 for an unknown number, or if it exceeds `size`. */
size_t culet_interned_text(struct culet_interned *table, uint32_t number, char *text, size_t size);

/* Adds a line "TYPE NUMBER TEXT" for each text whose bit in `used` is set; NULL: for all. Returns the number of lines. */
uint64_t culet_interned_write(struct culet_interned *table, struct culet_buffer *buffer, char type,
                              const unsigned char *used, size_t used_bytes);

/* Writes a text in the form of the stream: control characters, backslashes, `separator` (0: none) and bytes that are
 * not UTF-8 as \xNN. Returns its length; at most `size` bytes are written, and no part of an escape. */
size_t culet_interned_escape(char *to, size_t size, const char *from, size_t length, char separator);
