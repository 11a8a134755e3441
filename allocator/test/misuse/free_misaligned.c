/* expect: culet: free of {q}: misaligned, it points 1 byte into the 112-byte block {p} (size class 112), not at its start */
#include "misuse.h"

int main(void)
{
    char *p = malloc(100);
    name("p", p);
    name("q", p + 1);
    free(p + 1);
}
