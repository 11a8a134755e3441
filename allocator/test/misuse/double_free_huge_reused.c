/* expect: culet: double free of {p}: the 3145728-byte block {p} (large) is already free */
/* Somebody else's mapping has taken the freed block's place. */
#include "misuse.h"

int main(void)
{
    void *p = malloc(3 << 20);
    name("p", p);
    free(p);
    need(mmap(p, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p, "a mapping");
    free(p);
}
