/* expect: culet: realloc of {p}: the 3145728-byte block {p} (large) is already free */
#include "misuse.h"

int main(void)
{
    void *p = malloc(3 << 20);
    name("p", p);
    free(p);
    need(realloc(p, 4 << 20) != NULL, "unreachable");
}
