/* expect: culet: double free of {p}: the 48-byte block {p} (size class 48) is already free */
#include "misuse.h"

static void *give_back(void *block)
{
    free(block);
    return NULL;
}

int main(void)
{
    void *p = malloc(48);
    name("p", p);
    on_thread(give_back, p);
    on_thread(give_back, p);
}
