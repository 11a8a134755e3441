#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "residency.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PRESENT (UINT64_C(1) << 63) /* of an entry; Documentation/admin-guide/mm/pagemap.rst */
#define ENTRIES 512

/* By syscall(): open and close are cancellation points, and a thread that writes the profile may be cancelled. */
void culet_residency_open(struct culet_residency *r)
{
    int saved = errno;

    r->file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    r->page_bytes = getauxval(AT_PAGESZ);
    errno = saved;
}

void culet_residency_close(struct culet_residency *r)
{
    int saved = errno;

    if (r->file >= 0)
        (void)syscall(SYS_close, r->file);
    errno = saved;
}

/* The entries of at most ENTRIES pages. False: they cannot be read. */
static bool read_entries(const struct culet_residency *r, uint64_t first, uint64_t pages, uint64_t entry[ENTRIES])
{
    ssize_t bytes = (ssize_t)(pages * sizeof *entry);
    int saved = errno;
    bool whole = r->file >= 0 && pages <= ENTRIES &&
                 pread(r->file, entry, (size_t)bytes, (off_t)(first * sizeof *entry)) == bytes;

    errno = saved;
    return whole;
}

bool culet_residency_count(const struct culet_residency *r, const void *address, uint64_t bytes, uint64_t *resident)
{
    uint64_t page = (uintptr_t)address / r->page_bytes, present = 0, entry[ENTRIES];
    uint64_t past = ((uintptr_t)address + bytes + r->page_bytes - 1) / r->page_bytes;

    for (uint64_t pages; page < past; page += pages) {
        pages = past - page < ENTRIES ? past - page : ENTRIES;
        if (!read_entries(r, page, pages, entry))
            return false;
        for (uint64_t i = 0; i < pages; i++)
            present += (entry[i] & PRESENT) != 0;
    }
    *resident = present * r->page_bytes < bytes ? present * r->page_bytes : bytes;
    return true;
}

uint64_t culet_residency_mask(const struct culet_residency *r, const void *address, uint64_t part_bytes)
{
    uint64_t mask = 0, page = r->page_bytes, entry[ENTRIES];
    uint64_t first = (uintptr_t)address / page,
             pages = ((uintptr_t)address + 64 * part_bytes + page - 1) / page - first;
    bool whole = read_entries(r, first, pages, entry);

    for (unsigned i = 0; whole && i < 64; i++)
        mask |= (entry[((uintptr_t)address + i * part_bytes) / page - first] >> 63) << i;
    return mask;
}
