/* expect: culet: realloc of {p}: the 48-byte block {p} (size class 48) is already free */
#include "misuse.h"

int main(void)
{
    void *p = malloc(48);
    name("p", p);
    free(p);
    need(realloc(p, 100) != NULL, "unreachable");
}
