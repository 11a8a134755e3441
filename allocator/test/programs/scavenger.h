/* scavenger.h - for programs that count bytes in use: a heap of this size has a scavenger, for which libc allocates. */
#ifndef CULET_TEST_SCAVENGER_H
#define CULET_TEST_SCAVENGER_H

#include <stdlib.h>

/* Makes the heap so large that it has its scavenger from now on; in a forked child, that it has its own. */
static inline void begin_scavenger(void)
{
    void *volatile block[20];

    for (size_t i = 0; i < 20; i++)
        block[i] = malloc(900000);
    for (size_t i = 0; i < 20; i++)
        free(block[i]);
}

#endif
