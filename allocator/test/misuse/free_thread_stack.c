/* expect: culet: free of {q}: not a culet block; it lies on this thread's stack */
#include "misuse.h"

static void *mistake(void *unused)
{
    long on_stack[4] = {0};
    (void)unused;
    name("q", on_stack);
    free(on_stack);
    return NULL;
}

int main(void)
{
    on_thread(mistake, NULL);
}
