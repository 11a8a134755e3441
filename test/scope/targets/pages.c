/* Preloaded into culet-scope: simulates a machine with pages of PAGES_BYTES, in the reported page size and in
 * pagemap. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRUE_PAGE 4096
#define MOST_PARTS 16
#define PRESENT (UINT64_C(1) << 63)
#define SWAPPED (UINT64_C(1) << 62)
#define EXCLUSIVE (UINT64_C(1) << 56)

static size_t page_bytes(void)
{
    const char *bytes = getenv("PAGES_BYTES");

    return bytes ? strtoul(bytes, NULL, 10) : TRUE_PAGE;
}

/* The only question that the reader asks. */
long sysconf(int name)
{
    if (name == _SC_PAGESIZE)
        return (long)page_bytes();
    errno = EINVAL;
    return -1;
}

static int is_pagemap(int file)
{
    char name[64], path[256];

    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t length = readlink(name, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    return strstr(path, "/pagemap") != NULL;
}

/* A page is there if a part of it is; it is this process's alone if all of that is. */
static uint64_t whole(const uint64_t *parts, size_t count)
{
    uint64_t all = 0, alone = EXCLUSIVE;

    for (size_t i = 0; i < count; i++)
        if (parts[i] & PRESENT) {
            all |= parts[i] & ~EXCLUSIVE;
            alone &= parts[i];
        }
    for (size_t i = 0; i < count && !all; i++)
        if (parts[i] & SWAPPED)
            all = parts[i];
    return all & PRESENT ? all | alone : all;
}

ssize_t pread(int file, void *to, size_t bytes, off_t at)
{
    size_t count = page_bytes() / TRUE_PAGE, done = 0;
    uint64_t parts[MOST_PARTS];

    if (!is_pagemap(file))
        return syscall(SYS_pread64, file, to, bytes, at);
    for (; done + sizeof *parts <= bytes; done += sizeof *parts) {
        ssize_t got = syscall(SYS_pread64, file, parts, count * sizeof *parts, (at + (off_t)done) * (off_t)count);
        if (got != (ssize_t)(count * sizeof *parts))
            break;
        uint64_t entry = whole(parts, count);
        memcpy((char *)to + done, &entry, sizeof entry);
    }
    return (ssize_t)done;
}

/* The newer question for zero pages is as unknown as to older kernels. */
int ioctl(int file, unsigned long request, ...)
{
    (void)file;
    (void)request;
    errno = ENOTTY;
    return -1;
}
