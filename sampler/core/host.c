#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "host.h"

#include "clock.h"
#include "samples.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- settings ---- */

uint64_t culet_host_parse(const char *value)
{
    static const char units[] = "kmg";
    uint64_t bytes = 0;

    if (strcmp(value, "1") == 0)
        return CULET_PROFILE_DEFAULT_BYTES;
    if (*value < '0' || *value > '9')
        return 0;
    for (; *value >= '0' && *value <= '9' && bytes < UINT64_C(1) << 30; value++)
        bytes = bytes * 10 + (uint64_t)(*value - '0');
    const char *unit = *value ? strchr(units, *value | 0x20) : NULL;
    if (unit) {
        bytes <<= 10 * (unit - units + 1);
        value++;
    }
    return *value ? 0 : bytes;
}

bool culet_host_ruby(void)
{
    char path[4096];
    int saved = errno;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);

    errno = saved;
    if (length <= 0)
        return false;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    return strncmp(name ? name + 1 : path, "ruby", 4) == 0;
}

/* ---- resident size ---- */

/* It is read at most once in such a time: that takes as long as a sample. */
#define RESIDENT_NANOSECONDS 2000000

/* By syscall(): open, read and close are cancellation points, and malloc is none. */
static uint64_t read_resident(void)
{
    char text[128] = {0};
    int saved = errno;
    long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC);
    long got = file < 0 ? 0 : syscall(SYS_read, file, text, sizeof text - 1);

    if (file >= 0)
        syscall(SYS_close, file);
    errno = saved;
    const char *second = got > 0 ? strchr(text, ' ') : NULL;
    return second ? strtoul(second, NULL, 10) * getauxval(AT_PAGESZ) : 0;
}

/* By the profile, under its lock. */
static uint64_t resident(void)
{
    static uint64_t last, at;
    uint64_t now = culet_profile_clock(CLOCK_MONOTONIC_COARSE);

    if (now - at < RESIDENT_NANOSECONDS)
        return last;
    at = now;
    uint64_t bytes = read_resident();
    if (bytes)
        last = bytes;
    return last;
}

culet_host_resident_bytes *culet_host_resident(void)
{
    return read_resident() ? resident : NULL;
}

/* ---- epochs of a program without Ruby ---- */

#define EPOCH_SECONDS 10

static bool has_epochs;
static _Atomic int64_t epoch_start; /* in seconds */

static int64_t seconds(void)
{
    return (int64_t)(culet_profile_clock(CLOCK_MONOTONIC_COARSE) / 1000000000);
}

void culet_host_advance_epoch(void)
{
    int64_t start = atomic_load_explicit(&epoch_start, memory_order_relaxed);
    int64_t passed = has_epochs ? (seconds() - start) / EPOCH_SECONDS : 0;

    if (!passed || !atomic_compare_exchange_strong_explicit(&epoch_start, &start, start + passed * EPOCH_SECONDS,
                                                            memory_order_relaxed, memory_order_relaxed))
        return;
    for (int64_t i = 0; i < passed && i <= CULET_PROFILE_SURVIVALS; i++)
        culet_profile_api.next_epoch();
}

/* ---- samples ---- */

/* The library's code: its frames are the same in every stack, and are left out. In the tests it is part of the program. */
static uintptr_t code_start, code_end;

static void find_code(void)
{
#ifndef CULET_PREFIXED
    extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
    uintptr_t base = (uintptr_t)&__ehdr_start;
    const ElfW(Phdr) *header = (const ElfW(Phdr) *)(base + __ehdr_start.e_phoff);

    for (unsigned i = 0; i < __ehdr_start.e_phnum; i++) {
        if (header[i].p_type != PT_LOAD || !(header[i].p_flags & PF_X))
            continue;
        code_start = base + header[i].p_vaddr;
        code_end = code_start + header[i].p_memsz;
    }
#endif
}

void culet_host_setup(bool without_ruby)
{
    find_code();
    has_epochs = without_ruby;
    atomic_store_explicit(&epoch_start, seconds(), memory_order_relaxed);
}

uint32_t culet_host_add(const void *block, size_t bytes, double weight)
{
    uint64_t words[CULET_PROFILE_FRAMES];
    size_t from = 0;
    int saved = errno;

    culet_host_advance_epoch();
    size_t count = culet_profile_api.capture(words, CULET_PROFILE_FRAMES);
    while (from < count && words[from] - code_start < code_end - code_start)
        from++;
    uint32_t sample = culet_profile_api.add(CULET_PROFILE_MALLOC, block, bytes, weight, 0, words + from, count - from);
    errno = saved;
    return sample;
}

/* ---- the file at exit ---- */

/* A culet_profile_output; `descriptor` is a pointer to it. */
static bool write_whole(void *descriptor, const char *text, size_t length)
{
    while (length) {
        ssize_t done = write(*(int *)descriptor, text, length);
        if (done == 0 || (done < 0 && errno != EINTR))
            return false;
        if (done > 0)
            text += done, length -= (size_t)done;
    }
    return true;
}

void culet_host_complain(const char *text)
{
    int descriptor = STDERR_FILENO, saved = errno;

    (void)write_whole(&descriptor, text, strlen(text));
    errno = saved;
}

static void complain(const char *path, const char *why)
{
    char text[PATH_MAX + 128];

    snprintf(text, sizeof text, "culet: cannot write the profile to %s: %s\n", path, why);
    culet_host_complain(text);
}

static bool write_stream(int descriptor)
{
    static const char first[] = "culet-profile 1\n";
    uint64_t lines = 1;
    char last[32];

    if (!write_whole(&descriptor, first, sizeof first - 1) ||
        !culet_profile_api.write(write_whole, &descriptor, &lines))
        return false;
    int length = snprintf(last, sizeof last, "E %llu\n", (unsigned long long)lines);
    return write_whole(&descriptor, last, (size_t)length);
}

const char *culet_host_keep_out(const char *value)
{
    static char out[PATH_MAX];
    size_t length = strlen(value);

    return length < sizeof out ? memcpy(out, value, length + 1) : NULL;
}

bool culet_host_expand(const char *pattern, char *path, size_t room)
{
    size_t length = 0;

    for (; *pattern; pattern++) {
        int more = 1;
        if (pattern[0] == '%' && pattern[1] == 'p')
            more = snprintf(path + length, room - length, "%ld", (long)getpid()), pattern++;
        else
            path[length] = *pattern;
        length += (size_t)more;
        if (length >= room)
            return false;
    }
    path[length] = 0;
    return true;
}

bool culet_host_write(const char *path)
{
    char part[PATH_MAX + 32];

    snprintf(part, sizeof part, "%s.%ld.part", path, (long)getpid());
    int descriptor = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor < 0) {
        complain(path, strerror(errno));
        return false;
    }
    culet_host_advance_epoch();
    errno = 0;
    bool done = write_stream(descriptor);
    done = close(descriptor) == 0 && done;
    if (done && rename(part, path) == 0)
        return true;
    complain(path, errno ? strerror(errno) : "no memory");
    unlink(part);
    return false;
}

bool culet_host_write_at_exit(const char *pattern)
{
    char path[PATH_MAX];

    if (pattern && culet_host_expand(pattern, path, sizeof path))
        return culet_host_write(path);
    complain("CULET_PROFILE_OUT", strerror(ENAMETOOLONG));
    return false;
}
