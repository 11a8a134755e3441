/* expect: culet: double free of {p}: the 208-byte block {p} (size class 208) is already free */
/* The thread that allocated and freed the block, and had its neighbours in its cache, has ended. */
#include "misuse.h"

static void *use(void *data)
{
    void **slot = data;
    void *keep = malloc(200);
    *slot = malloc(200);
    need(keep && *slot, "two blocks");
    free(*slot);
    return keep;
}

int main(void)
{
    void *p;
    on_thread(use, &p);
    name("p", p);
    free(p);
}
