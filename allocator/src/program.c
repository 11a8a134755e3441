#define _GNU_SOURCE
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIBRARY "libculet.so"

static bool is_ruby(void)
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


struct wishes {
    bool inherited;
    bool all;
};

static void look(const char *entry, struct wishes *wishes)
{
    if (strcmp(entry, "CULET_INHERITED=1") == 0)
        wishes->inherited = true;
    else if (strcmp(entry, "CULET_CHILDREN=all") == 0)
        wishes->all = true;
}

/* The environment as the program was started with, asked of the kernel: the first allocation can come
 * before libc has an environ. Entries longer than the buffer are passed over: neither variable is one. */
static void read_environment(struct wishes *wishes)
{
    char buffer[1024], *at = buffer;
    bool skipping = false;
    int saved = errno, fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);

    for (;;) {
        ssize_t got = fd < 0 ? 0 : read(fd, at, (size_t)(buffer + sizeof buffer - at));
        if (got <= 0)
            break;
        char *end = at + got, *from = buffer, *zero;
        while ((zero = memchr(from, 0, (size_t)(end - from)))) {
            if (!skipping)
                look(from, wishes);
            skipping = false;
            from = zero + 1;
        }
        if (from == buffer && end == buffer + sizeof buffer) {
            skipping = true;
            from = end;
        }
        memmove(buffer, from, (size_t)(end - from));
        at = buffer + (end - from);
    }
    if (fd >= 0)
        close(fd);
    errno = saved;
}

bool culet_program_dormant(void)
{
    struct wishes wishes = {0};

    if (environ)
        for (char **entry = environ; *entry; entry++)
            look(*entry, &wishes);
    else
        read_environment(&wishes);
    return wishes.inherited && !wishes.all && !is_ruby();
}

/* Takes every entry of LD_PRELOAD that is this library out of it. */
static void leave_preload(void)
{
    const char *preload = getenv("LD_PRELOAD");
    if (!preload)
        return;

    char *rest = malloc(strlen(preload) + 1), *to = rest;
    if (!rest)
        return;
    for (const char *at = preload; *at;) {
        size_t length = strcspn(at, ": "), gap = strspn(at + length, ": ");
        const char *slash = memrchr(at, '/', length), *name = slash ? slash + 1 : at;
        if (strncmp(name, LIBRARY, sizeof LIBRARY - 1) != 0) {
            if (to != rest)
                *to++ = ':';
            to = mempcpy(to, at, length);
        }
        at += length + gap;
    }
    *to = 0;
    if (to == rest)
        unsetenv("LD_PRELOAD");
    else
        setenv("LD_PRELOAD", rest, 1);
    free(rest);
}

void culet_program_mark(void)
{
    const char *children = getenv("CULET_CHILDREN");

    if (children && strcmp(children, "none") == 0)
        leave_preload();
    else if (!(children && strcmp(children, "all") == 0) && is_ruby())
        setenv("CULET_INHERITED", "1", 1);
}
