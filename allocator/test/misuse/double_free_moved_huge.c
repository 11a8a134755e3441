/* expect: culet: double free of {p}: the 3145728-byte block {p} (large) is already free */
/* realloc has moved the block's pages elsewhere; the old address is freed. */
#include "misuse.h"

int main(void)
{
    char *p = malloc(3 << 20);
    name("p", p);
    /* Something in the way, so that it cannot grow where it is. */
    void *behind = mmap(p + (3 << 20), 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(behind != MAP_FAILED, "a mapping");
    void *q = realloc(p, 64 << 20);
    need(q && q != p, "the block moved");
    free(p);
}
