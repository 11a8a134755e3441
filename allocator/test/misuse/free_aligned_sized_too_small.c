/* expect: culet: free_aligned_sized of {p}: called with a size of 128 for a block of 512 */
#include "misuse.h"

int main(void)
{
    void (*free_aligned_sized)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    need(free_aligned_sized != NULL, "free_aligned_sized");
    for (size_t alignment = 16; alignment <= 8192; alignment *= 2)
        for (size_t bytes = alignment; bytes <= 100000; bytes = bytes / alignment * 3 / 2 * alignment + alignment)
            free_aligned_sized(aligned_alloc(alignment, bytes), alignment, bytes);
    void *p = aligned_alloc(64, 512);
    name("p", p);
    free_aligned_sized(p, 64, 128);
}
