/* expect: culet: free of {q}: it points 2097152 bytes into the 3145728-byte block {p} (large), not at its start */
#include "misuse.h"

int main(void)
{
    char *p = malloc(3 << 20);
    name("p", p);
    name("q", p + (2 << 20));
    free(p + (2 << 20));
}
