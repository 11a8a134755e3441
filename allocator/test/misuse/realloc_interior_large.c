/* expect: culet: realloc of {q}: it points 4096 bytes into the 102400-byte block {p} (large), not at its start */
#include "misuse.h"

int main(void)
{
    char *p = malloc(100000);
    name("p", p);
    name("q", p + 4096);
    need(realloc(p + 4096, 200) != NULL, "unreachable");
}
