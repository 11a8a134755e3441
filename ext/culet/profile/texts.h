/* profile/texts.h - a bounded table of texts with numbers from 1 on, each text once, in mappings of its own. It never forgets a
 * text. The caller locks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/core/index.h"

struct culet_texts {
    uint32_t most; /* texts */
    size_t most_bytes;
    uint32_t *starts; /* text N is [starts[N], starts[N + 1]) of the bytes; NULL: there is none yet */
    char *bytes;
    struct culet_index index;
    uint32_t count;
};

/* Maps the table unless it is there. False: no memory. */
bool culet_texts_prepare(struct culet_texts *texts);

/* Unmaps the table and leaves it empty. */
void culet_texts_free(struct culet_texts *texts);

/* The number of a text. A new one gets a number if there are fewer than `limit`; otherwise, and without room, 0. */
uint32_t culet_texts_add(struct culet_texts *texts, const char *text, size_t length, uint32_t limit);

/* The text of a number that was given out. */
static inline const char *culet_texts_get(const struct culet_texts *texts, uint32_t number, size_t *length)
{
    *length = texts->starts[number + 1] - texts->starts[number];
    return texts->bytes + texts->starts[number];
}
