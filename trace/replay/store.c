#define _GNU_SOURCE
#include "store.h"

#include "complain.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *culet_store_new(size_t count, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count ? count : 1, bytes, &total))
        culet_complain("the trace is too large for this machine's address space");
    void *store = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (store == MAP_FAILED)
        culet_complain("there is no memory for %zu MB of bookkeeping; replay on a machine that has more, or record less",
                       total / 1000000);
    return store;
}

void culet_store_free(void *store, size_t count, size_t bytes)
{
    munmap(store, (count ? count : 1) * bytes);
}

void culet_store_grow(void **store, size_t *count, size_t wanted, size_t bytes)
{
    size_t larger = *count ? *count : 1024;

    if (wanted <= *count)
        return;
    while (larger < wanted)
        larger *= 2;
    void *grown = culet_store_new(larger, bytes);
    if (*count) {
        memcpy(grown, *store, *count * bytes);
        culet_store_free(*store, *count, bytes);
    }
    *store = grown;
    *count = larger;
}

void culet_store_rest(void *store, size_t from, size_t to)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    from = from / page * page;
    to = to / page * page;
    if (from < to)
        madvise((char *)store + from, to - from, MADV_DONTNEED);
}
