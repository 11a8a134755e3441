/* readable.h - reads from addresses that may be wrong: those in stacks and unwind tables, which may be damaged. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's pages are as large or larger. */
#define CULET_READABLE_PAGE ((uintptr_t)4096)
#define CULET_READABLE_PAGES 16 /* a power of two */

/* Pages that the kernel has found readable, bit 0 set. Kept for one walk only: a stack of a fiber and a library may be
 * unmapped before the next. */
struct culet_readable {
    uintptr_t page[CULET_READABLE_PAGES];
};

/* The kernel reads the mask before it refuses the invalid `how`. No filter of system calls forbids this one. */
static __attribute__((noinline, unused)) bool culet_readable_check(struct culet_readable *r, uintptr_t page)
{
    int error = errno;
    bool readable = page && (syscall(SYS_rt_sigprocmask, -1, page, NULL, 8) == 0 || errno != EFAULT);

    errno = error;
    if (readable)
        r->page[page / CULET_READABLE_PAGE % CULET_READABLE_PAGES] = page | 1;
    return readable;
}

static inline bool culet_readable_page(struct culet_readable *r, uintptr_t address)
{
    uintptr_t page = address & -CULET_READABLE_PAGE;

    return __builtin_expect(r->page[page / CULET_READABLE_PAGE % CULET_READABLE_PAGES] == (page | 1), 1) ||
           culet_readable_check(r, page);
}

/* Copies at most a page. False: it cannot be read. */
static inline bool culet_readable_copy(struct culet_readable *r, void *copy, uintptr_t address, size_t bytes)
{
    if (!culet_readable_page(r, address) || !culet_readable_page(r, address + bytes - 1))
        return false;
    memcpy(copy, (const void *)address, bytes);
    return true;
}
