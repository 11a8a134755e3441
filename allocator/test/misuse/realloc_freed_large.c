/* expect: culet: realloc of {p}: the 102400-byte block {p} (large) is already free */
#include "misuse.h"

int main(void)
{
    void *p = malloc(100000);
    name("p", p);
    free(p);
    need(realloc(p, 200000) != NULL, "unreachable");
}
