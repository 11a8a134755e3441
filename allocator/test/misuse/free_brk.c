/* expect: culet: free of {q}: not a culet block; it lies in [heap] */
/* The break belongs to glibc's allocator, which does not serve this process. */
#include "misuse.h"

int main(void)
{
    char *q = sbrk(65536);
    need(q != (char *)-1, "room at the break");
    q = (char *)(((uintptr_t)q + 15) & ~(uintptr_t)15);
    name("q", q);
    free(q);
}
