/* expect: culet: malloc_usable_size of {q}: not a culet block; it lies on this thread's stack */
#include "misuse.h"

int main(void)
{
    long on_stack[4] = {0};
    name("q", on_stack);
    need(malloc_usable_size(on_stack) != 0, "unreachable");
}
