/* expect: culet: free of {q}: not a culet block; it lies in an anonymous mapping */
#include "misuse.h"

int main(void)
{
    void *q = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(q != MAP_FAILED, "a mapping");
    /* A shared mapping is listed as /dev/zero; a private one merges with nothing once it is read-only. */
    need(munmap(q, 65536) == 0, "the mapping's end");
    q = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(q != MAP_FAILED, "a mapping");
    name("q", q);
    free(q);
}
