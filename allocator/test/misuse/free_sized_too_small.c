/* expect: culet: free_sized of {p}: called with a size of 50 for a block of 112 */
/* A block of 112 bytes is nobody's who asked for 50, nor what realloc leaves of a longer one. */
#include "misuse.h"

int main(void)
{
    void (*free_sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    need(free_sized != NULL, "free_sized");
    void *shrunk = realloc(malloc(112), 90);
    free_sized(shrunk, 90);
    void *p = malloc(100);
    name("p", p);
    free_sized(p, 50);
}
