/* expect: culet: free of {q}: it points past the last block of a slab (size class 272) */
#include "misuse.h"

static int by_address(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    static char *block[2000];
    int i;
    for (i = 0; i < 2000; i++)
        block[i] = malloc(272);
    qsort(block, 2000, sizeof *block, by_address);
    /* 272 bytes divide no number of pages that a slab may have: there is a remainder behind each last block. */
    for (i = 0; i < 1999; i++)
        if (block[i + 1] - block[i] > 272 && block[i + 1] - block[i] < 272 * 2)
            break;
    need(i < 1999, "two neighbouring slabs");
    char *q = block[i] + 272;
    name("q", q);
    free(q);
}
