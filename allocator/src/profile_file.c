#define _GNU_SOURCE
#include "profile_file.h"

#include "../../profile/samples.h"
#include "abandoned.h"
#include "heap.h"
#include "loader.h"
#include "lock.h"
#include "os.h"
#include "program.h"
#include "sampling.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define LAST ".last"

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
static bool write_file(const char *path)
{
    char part[PATH_MAX + 64];

    snprintf(part, sizeof part, "%s.%ld.part", path, (long)getpid());
    int descriptor = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor < 0) {
        complain(path, strerror(errno));
        return false;
    }
    culet_sampling_advance_epoch();
    errno = 0;
    bool done = write_stream(descriptor);
    done = close(descriptor) == 0 && done;
    if (done && rename(part, path) == 0)
        return true;
    complain(path, errno ? strerror(errno) : "no memory");
    unlink(part);
    return false;
}

static bool wanted(void)
{
    const char *pattern = culet_program_profile_out();

    return culet_program_profile_bytes() && !(pattern && !*pattern) && !getauxval(AT_SECURE) && !culet_heap_dormant() &&
           !culet_program_ruby();
}

/* ---- while the program runs ---- */

/* A write takes at most this part of the time. */
#define SHARE 50

enum state { OFF, REQUESTED, STARTED };

static _Atomic enum state state;
static struct culet_lock writing; /* taken before all others, so that a fork finds no file half written */
static bool left;                 /* [writing] there is a file of this process */
static bool ending;               /* [writing] */

static bool last_path(char *path, size_t room)
{
    const char *pattern = culet_program_profile_out();
    size_t length;

    if (!pattern || !expand(pattern, path, room - sizeof LAST))
        return false;
    length = strlen(path);
    memcpy(path + length, LAST, sizeof LAST);
    return true;
}

static bool write_last(void)
{
    char path[PATH_MAX];

    culet_lock(&writing);
    bool done = !ending && last_path(path, sizeof path) && write_file(path);
    left |= done;
    culet_unlock(&writing);
    return done;
}

static uint64_t microseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* One that cannot be written is reported once. */
static void *keep(void *unused)
{
    uint64_t least = (uint64_t)culet_program_profile_seconds() * 1000000;

    prctl(PR_SET_NAME, "culet");
    for (uint64_t pause = least; pause;) {
        culet_os_pause((unsigned)(pause < UINT_MAX ? pause : UINT_MAX));
        uint64_t begun = microseconds();
        bool done = write_last();
        uint64_t taken = SHARE * (microseconds() - begun);
        pause = !done ? 0 : taken > least ? taken : least;
    }
    return unused;
}

void culet_profile_file_setup(void)
{
    if (culet_program_profile_seconds() && wanted())
        atomic_store(&state, REQUESTED);
}

static bool inside_loader(const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (culet_loader_busy((const void *)(uintptr_t)words[i]))
            return true;
    return false;
}

void culet_profile_file_sampled(const uint64_t *words, size_t count)
{
    enum state requested = REQUESTED;

    if (CULET_LIKELY(atomic_load_explicit(&state, memory_order_relaxed) != REQUESTED) ||
        atomic_load(&culet_lock_held_for_fork) || inside_loader(words, count) ||
        !atomic_compare_exchange_strong(&state, &requested, STARTED))
        return;
    culet_abandoned_watch();
    if (!culet_thread_start(keep))
        atomic_store(&state, OFF);
}

void culet_profile_file_before_fork(void)
{
    culet_lock(&writing);
}

void culet_profile_file_after_fork_in_parent(void)
{
    culet_unlock(&writing);
}

/* The thread is not in the child. */
void culet_profile_file_after_fork_in_child(void)
{
    left = false;
    if (atomic_load(&state) != OFF)
        atomic_store(&state, REQUESTED);
    culet_lock_reset(&writing);
}

/* ---- at exit ---- */

void culet_profile_file_end(void)
{
    const char *pattern = culet_program_profile_out();
    char path[PATH_MAX];

    if (!wanted() || culet_abandoned())
        return;
    culet_lock(&writing);
    ending = true;
    if (!pattern || !expand(pattern, path, sizeof path))
        complain("CULET_PROFILE_OUT", strerror(ENAMETOOLONG));
    else if (write_file(path) && left && last_path(path, sizeof path))
        unlink(path);
    culet_unlock(&writing);
}
