/* profile/interned.h - tables of texts behind a lock: names of types, label sets, in the form of the profile's stream. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "profile/texts.h"

#define CULET_INTERNED_TEXTS 10240

#define CULET_INTERNED_EMPTY                                                                                           \
    {                                                                                                                  \
        .most = CULET_INTERNED_TEXTS, .most_bytes = (size_t)4 << 20                                                    \
    }

/* Registers the fork handlers of the lock. Once. Returns 0 or an errno. */
int culet_interned_prepare(void);

/* The number of a text, from 1 on. A new text gets a number if there are fewer than `limit`, at most
 * CULET_INTERNED_TEXTS; otherwise, and without memory, 0. */
uint32_t culet_interned_number(struct culet_texts *table, const char *text, size_t length, uint32_t limit);

/* Copies the text of a number. Returns its length; 0 for an unknown number, or if it exceeds `size`. */
size_t culet_interned_text(struct culet_texts *table, uint32_t number, char *text, size_t size);

/* A bit for each number. */
typedef unsigned char culet_interned_bits[CULET_INTERNED_TEXTS / 8 + 1];

/* Adds a line "TYPE NUMBER TEXT" for each text whose bit in `used` is set. Returns the number of lines. */
uint64_t culet_interned_write(struct culet_texts *table, struct culet_buffer *buffer, char type,
                              const culet_interned_bits used);
