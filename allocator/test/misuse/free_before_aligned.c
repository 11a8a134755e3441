/* expect: culet: free of {q}: it points 4032 bytes into the 4096-byte block {b} (size class 4096), not at its start */
/* The pointer to a header that an aligning wrapper would have kept before the block. */
#include "misuse.h"

int main(void)
{
    char *a = aligned_alloc(4096, 4096), *b = aligned_alloc(4096, 4096);
    /* Two neighbours, in whichever order. */
    char *low = a < b ? a : b, *high = a < b ? b : a;
    need(high - low == 4096, "two neighbouring blocks");
    name("b", low);
    name("q", high - 64);
    free(high - 64);
}
