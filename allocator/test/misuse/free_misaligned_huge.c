/* expect: culet: free of {q}: misaligned, it points 8 bytes into the 3145728-byte block {p} (large), not at its start */
#include "misuse.h"

int main(void)
{
    char *p = malloc(3 << 20);
    name("p", p);
    name("q", p + 8);
    free(p + 8);
}
