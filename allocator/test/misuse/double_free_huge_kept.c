/* expect: culet: double free of {p}: the 3145728-byte block {p} (large) is already free */
/* The block's pages are kept for the next one: the heap is large, and has a scavenger. */
#include "misuse.h"

int main(void)
{
    void *volatile block[20];

    for (int i = 0; i < 20; i++)
        block[i] = malloc(900000);
    for (int i = 0; i < 20; i++)
        free(block[i]);
    void *p = malloc(3 << 20);
    name("p", p);
    free(p);
    free(p);
}
