/* Simulates larger kernel pages: linked with --wrap, so the allocator sees pages of CHECK_PAGE bytes and mappings that
 * begin at multiples of them. It must return memory in such pages too; the real kernel, with smaller ones, accepts
 * that. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>

unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

static unsigned long page(void)
{
    const char *given = getenv("CHECK_PAGE");

    return given ? strtoul(given, NULL, 10) : __real_getauxval(AT_PAGESZ);
}

unsigned long __wrap_getauxval(unsigned long type)
{
    return type == AT_PAGESZ ? page() : __real_getauxval(type);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    size_t unit = page();

    if (at || fd >= 0)
        return __real_mmap(at, bytes, protection, flags, fd, offset);
    uintptr_t start = (uintptr_t)__real_mmap(NULL, bytes + unit, protection, flags, fd, offset);
    if ((void *)start == MAP_FAILED)
        return MAP_FAILED;
    uintptr_t first = (start + unit - 1) & ~(unit - 1);
    if (first > start)
        munmap((void *)start, first - start);
    if (first + bytes < start + bytes + unit)
        munmap((void *)(first + bytes), start + unit - first);
    return (void *)first;
}
