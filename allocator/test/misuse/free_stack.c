/* expect: culet: free of {q}: not a culet block; it lies on this thread's stack */
#include "misuse.h"

int main(void)
{
    long on_stack[4] = {0};
    name("q", on_stack);
    free(on_stack);
}
