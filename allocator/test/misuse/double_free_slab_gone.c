/* expect: culet: double free of {p}: the 640-byte block {p} (size class 640) is already free */
/* All blocks of the slab were freed, and the slab has been given back. */
#include "misuse.h"

int main(void)
{
    static void *block[1000];
    for (int i = 0; i < 1000; i++)
        block[i] = malloc(640);
    name("p", block[77]);
    for (int i = 0; i < 1000; i++)
        free(block[i]);
    malloc_trim(0);
    free(block[77]);
}
