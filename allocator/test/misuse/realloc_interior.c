/* expect: culet: realloc of {q}: it points 16 bytes into the 112-byte block {p} (size class 112), not at its start */
#include "misuse.h"

int main(void)
{
    char *p = malloc(100);
    name("p", p);
    name("q", p + 16);
    need(realloc(p + 16, 200) != NULL, "unreachable");
}
