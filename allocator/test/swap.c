/* Simulates a kernel that has swapped pages out: linked with --wrap, so mincore reports most pages as not resident. Their
 * contents are there nevertheless. */
#include <stddef.h>
#include <sys/mman.h>

int __real_mincore(void *start, size_t bytes, unsigned char *resident);
int __wrap_mincore(void *start, size_t bytes, unsigned char *resident);

int __wrap_mincore(void *start, size_t bytes, unsigned char *resident)
{
    int result = __real_mincore(start, bytes, resident);

    for (size_t i = 0; i * 4096 < bytes; i++)
        if (i % 4)
            resident[i] = 0;
    return result;
}
