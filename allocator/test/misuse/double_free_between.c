/* expect: culet: double free of {p}: the 48-byte block {p} (size class 48) is already free */
/* Blocks of the same and of other sizes are allocated in between, and the freed one is not used again. */
#include "misuse.h"

int main(void)
{
    static void *block[300];
    for (int i = 0; i < 300; i++)
        block[i] = malloc(48);
    void *p = block[2];
    name("p", p);
    free(p);
    for (size_t size = 64; size < 5000; size += 100)
        need(malloc(size) != p, "other blocks of other sizes");
    need(malloc(48) != p, "another block of the same size");
    free(p);
}
