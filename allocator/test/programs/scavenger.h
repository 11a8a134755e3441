/* scavenger.h - starts the scavenger, for programs that count bytes in use: libc allocates for its thread. */
#pragma once

#include <stdlib.h>

/* Grows the heap until its scavenger runs; in a forked child, the child's own. Takes the tested heap's functions. */
static inline void begin_scavenger_of(void *(*allocate)(size_t), void (*release)(void *))
{
    void *volatile block[20];

    for (size_t i = 0; i < 20; i++)
        block[i] = allocate(900000);
    for (size_t i = 0; i < 20; i++)
        release(block[i]);
}

static inline void begin_scavenger(void)
{
    begin_scavenger_of(malloc, free);
}
