/* expect: culet: free_sized of {p}: called with a size of 500 for a block of 112 */
#include "misuse.h"

int main(void)
{
    void (*free_sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    need(free_sized != NULL, "free_sized");
    void *p = malloc(100);
    name("p", p);
    free_sized(p, 500);
}
