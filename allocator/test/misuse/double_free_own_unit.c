/* expect: culet: double free of {p}: the 640-byte block {p} (size class 640) is already free */
/* Freed here, where it goes back into the unit that this thread is handing out, then freed by another thread. */
#include "misuse.h"

static void *free_again(void *p)
{
    free(p);
    return NULL;
}

int main(void)
{
    void *p = malloc(640);

    name("p", p);
    free(p);
    on_thread(free_again, p);
}
