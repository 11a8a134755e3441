/* expect: culet: free of {q}: it points 16 bytes into the 112-byte block {p} (size class 112), not at its start */
#include "misuse.h"

int main(void)
{
    char *p = malloc(100);
    name("p", p);
    name("q", p + 16);
    free(p + 16);
}
