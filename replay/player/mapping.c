#define _GNU_SOURCE
#include "mapping.h"

#include <err.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *culet_mapping_new(size_t count, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count ? count : 1, bytes, &total))
        errx(1, "the trace is too large for this machine's address space");
    void *mapping = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        errx(1, "not enough memory: the replay needs %zu MB for the trace; use a machine with more, or record less",
             total / 1000000);
    return mapping;
}

void culet_mapping_free(void *mapping, size_t count, size_t bytes)
{
    munmap(mapping, (count ? count : 1) * bytes);
}

void culet_mapping_grow(void **mapping, size_t *count, size_t wanted, size_t bytes)
{
    size_t larger = *count ? *count : 1024;

    if (wanted <= *count)
        return;
    while (larger < wanted)
        larger *= 2;
    void *grown = culet_mapping_new(larger, bytes);
    if (*count) {
        memcpy(grown, *mapping, *count * bytes);
        culet_mapping_free(*mapping, *count, bytes);
    }
    *mapping = grown;
    *count = larger;
}

void culet_mapping_unmap_pages(void *mapping, size_t from, size_t to)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    from = from / page * page;
    to = to / page * page;
    if (from < to)
        madvise((char *)mapping + from, to - from, MADV_DONTNEED);
}
