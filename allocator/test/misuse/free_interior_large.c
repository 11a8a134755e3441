/* expect: culet: free of {q}: it points 8192 bytes into the 102400-byte block {p} (large), not at its start */
#include "misuse.h"

int main(void)
{
    char *p = malloc(100000);
    name("p", p);
    name("q", p + 8192);
    free(p + 8192);
}
