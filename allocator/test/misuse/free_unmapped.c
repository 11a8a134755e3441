/* expect: culet: free of {q}: not a culet block; nothing is mapped there */
#include "misuse.h"

int main(void)
{
    /* The heap stands, and does not move in where the mapping was. */
    need(malloc(48) != NULL, "a block");
    void *q = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(q != MAP_FAILED, "a mapping");
    name("q", q);
    need(munmap(q, 1 << 20) == 0, "the mapping's end");
    free(q);
}
