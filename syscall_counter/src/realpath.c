/*
 * glibc's realpath (stdlib/canonicalize.c) asks the kernel about each component in turn: readlink since 2.33, lstat
 * before, which is as many calls but for the links. Where the answer is the path itself, no link was met, and counting
 * components is enough; that is nearly always so. Otherwise the walk is made once more, with system calls of our own
 * that nobody counts.
 */
#define _GNU_SOURCE
#include "realpath.h"
#include "counts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINKS 40 /* the kernel's own limit, and glibc's */

static void count_components(const char *path)
{
    for (const char *at = path; *at; at++)
        if (at[0] == '/' && at[1] != '\0')
            culet_count_path(false);
}

/* Takes the last component away; the root stays. */
static void strip(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash)
        *slash = '\0';
}

/* Puts a link's target before what is left of the path. False where that is too long. */
static bool divert(char *rest, const char *target, size_t length, const char *remainder)
{
    size_t remainder_length = strlen(remainder);

    if (length + remainder_length >= PATH_MAX)
        return false;
    memmove(rest + length, remainder, remainder_length + 1);
    memcpy(rest, target, length);
    return true;
}

/* Walks the path as realpath does; `done` is what is resolved so far, `rest` what is not, both of PATH_MAX bytes. */
static void walk(char *done, char *rest)
{
    char target[PATH_MAX];
    int links = 0;
    const char *at = rest;

    while (*at) {
        size_t length, have;
        long got;

        at += strspn(at, "/");
        length = strcspn(at, "/");
        if (length == 0)
            break;
        if ((length == 1 && at[0] == '.') || (length == 2 && at[0] == '.' && at[1] == '.')) {
            if (length == 2)
                strip(done);
            at += length;
            continue;
        }
        have = strlen(done);
        if (have + 1 + length >= PATH_MAX)
            break;
        done[have] = '/';
        memcpy(done + have + 1, at, length);
        done[have + 1 + length] = '\0';
        at += length;
        got = syscall(SYS_readlinkat, AT_FDCWD, done, target, sizeof target - 1);
        culet_count_path(got < 0 && errno != EINVAL);
        if (got < 0 && errno != EINVAL)
            break;
        if (got < 0)
            continue;
        if (++links > LINKS)
            break;
        done[target[0] == '/' ? 0 : have] = '\0';
        if (!divert(rest, target, (size_t)got, at))
            break;
        at = rest;
    }
}

void culet_count_realpath(const char *path, const char *resolved)
{
    char done[PATH_MAX], rest[PATH_MAX];
    int saved = errno;

    if (!path || strlen(path) >= PATH_MAX)
        return;
    if (resolved && strcmp(path, resolved) == 0) {
        count_components(path);
        return;
    }
    strcpy(rest, path);
    done[0] = '\0';
    if (path[0] == '/' || getcwd(done, sizeof done))
        walk(done, rest);
    errno = saved;
}
