#define _GNU_SOURCE
#include "profiler.h"

#include "../../profile/samples.h"
#include "abandoned.h"
#include "bin.h"
#include "heap.h"
#include "lock.h"
#include "os.h"
#include "program.h"
#include "purge.h"
#include "sampling.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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
    return second ? strtoul(second, NULL, 10) * culet_os_page_bytes() : 0;
}

/* By the profile, under its lock. */
static uint64_t resident(void)
{
    static uint64_t last, at;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t nanoseconds = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (nanoseconds - at < RESIDENT_NANOSECONDS)
        return last;
    at = nanoseconds;
    uint64_t bytes = read_resident();
    if (bytes)
        last = bytes;
    return last;
}

/* ---- start and end ---- */

#define NO_MEMORY "culet: no memory for the profile\n"

static _Atomic uint32_t started; /* profiles so far */

/* Units that are current would be used without being counted, until they are empty. */
static void begin(void)
{
    if (culet_heap_dormant())
        return;
    uint32_t number = atomic_fetch_add_explicit(&started, 1, memory_order_relaxed) + 1;
    atomic_store_explicit(&culet_bin_profile, number, memory_order_relaxed);
    culet_purge_drop_current();
}

static void end(void)
{
    atomic_store_explicit(&culet_bin_profile, 0, memory_order_relaxed);
    if (!culet_heap_dormant())
        culet_purge_drop_current();
}

void culet_profiler_setup(void)
{
    struct culet_profile_host host = {.started = begin, .stopped = end};

    /* Without /proc the peak is that of the live bytes. */
    if (read_resident())
        host.resident = resident;
    culet_sampling_setup();
    culet_profile_set_host(&host);
    if (culet_program_profile_bytes() && !culet_profile_api.start(culet_program_profile_bytes()))
        culet_os_write_error(NO_MEMORY, sizeof NO_MEMORY - 1);
}

/* ---- fork ---- */

void culet_profiler_before_fork(void)
{
    culet_profile_prepare();
}

void culet_profiler_after_fork_in_parent(void)
{
    culet_profile_parent();
    culet_large_remove_forked_samples();
}

void culet_profiler_after_fork_in_child(void)
{
    culet_profile_child();
    culet_large_remove_forked_samples();
}

/* ---- the file at exit ---- */

static void complain(const char *path, const char *why)
{
    char text[PATH_MAX + 128];
    int length = snprintf(text, sizeof text, "culet: cannot write the profile to %s: %s\n", path, why);

    culet_os_write_error(text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

struct file {
    int descriptor;
    bool failed;
    size_t length;
    char buffer[8192];
};

static void flush(struct file *file)
{
    for (size_t at = 0; at < file->length && !file->failed;) {
        ssize_t done = write(file->descriptor, file->buffer + at, file->length - at);
        if (done > 0)
            at += (size_t)done;
        else if (done == 0 || errno != EINTR)
            file->failed = true;
    }
    file->length = 0;
}

static bool output(void *data, const char *text, size_t length)
{
    struct file *file = data;

    while (length && !file->failed) {
        size_t room = sizeof file->buffer - file->length, part = length < room ? length : room;
        memcpy(file->buffer + file->length, text, part);
        file->length += part;
        text += part;
        length -= part;
        if (file->length == sizeof file->buffer)
            flush(file);
    }
    return !file->failed;
}

static bool write_stream(int descriptor)
{
    static const char first[] = "culet-profile 1\n";
    struct file file = {.descriptor = descriptor};
    uint64_t lines = 1;
    char last[32];

    if (!output(&file, first, sizeof first - 1) || !culet_profile_api.write(output, &file, &lines))
        return false;
    int length = snprintf(last, sizeof last, "E %llu\n", (unsigned long long)lines);
    output(&file, last, (size_t)length);
    flush(&file);
    return !file.failed;
}

/* The file's name: %p is the process id. False: too long. */
static bool expand(const char *pattern, char *path, size_t room)
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

/* Whole or not at all, and readable by its owner only. */
static void write_file(const char *path)
{
    char part[PATH_MAX + 32];

    snprintf(part, sizeof part, "%s.%ld.part", path, (long)getpid());
    int descriptor = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor < 0) {
        complain(path, strerror(errno));
        return;
    }
    culet_sampling_advance_epoch();
    errno = 0;
    bool done = write_stream(descriptor);
    done = close(descriptor) == 0 && done;
    if (!done || rename(part, path) != 0) {
        complain(path, errno ? strerror(errno) : "no memory");
        unlink(part);
    }
}

void culet_profiler_end(void)
{
    const char *pattern = culet_program_profile_out();
    char path[PATH_MAX];

    if (!culet_program_profile_bytes() || (pattern && !*pattern) || getauxval(AT_SECURE) || culet_heap_dormant() ||
        culet_program_ruby())
        return;
    if (!pattern || !expand(pattern, path, sizeof path))
        complain("CULET_PROFILE_OUT", strerror(ENAMETOOLONG));
    else
        write_file(path);
}
