/* glibc's realpath (stdlib/canonicalize.c) makes one system call per component: readlink since 2.33, lstat before. If
 * the result equals the path there were no links, and counting components suffices, as nearly always. Otherwise the
 * path is resolved once more here, with uncounted system calls. */
#define _GNU_SOURCE
#include "realpath.h"
#include "counts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINKS 40 /* limit of the kernel and of glibc */

static void count_components(const char *path)
{
    for (const char *at = path; *at; at++)
        if (at[0] == '/' && at[1] != '\0')
            culet_count_path(false);
}

/* Removes the last component, except the root. */
static void strip(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash)
        *slash = '\0';
}

/* Puts a link's target before the remainder of the path. False if the result is too long. */
static bool divert(char *rest, const char *target, size_t length, const char *remainder)
{
    size_t remainder_length = strlen(remainder);

    if (length + remainder_length >= PATH_MAX)
        return false;
    memmove(rest + length, remainder, remainder_length + 1);
    memcpy(rest, target, length);
    return true;
}

/* Resolves as realpath does. done: the resolved part, rest: the remainder, both of PATH_MAX bytes. */
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
