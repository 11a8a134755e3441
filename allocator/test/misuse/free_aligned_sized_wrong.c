/* expect: culet: free_aligned_sized of {p}: called with a size of 500 for a block of 128 */
#include "misuse.h"

int main(void)
{
    void (*free_aligned_sized)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    need(free_aligned_sized != NULL, "free_aligned_sized");
    void *p = aligned_alloc(64, 128);
    name("p", p);
    free_aligned_sized(p, 64, 500);
}
