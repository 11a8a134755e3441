#define _GNU_SOURCE
#include "program.h"

#include "../../sampler/core/host.h"
#include "harden.h"
#include "os.h"
#include "reclaim_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct culet_settings culet_settings = {.decay_ms = CULET_DECAY_MS, .profile_out = ""};

#ifdef CULET_PREFIXED /* linked in, not preloaded: always served, without settings */

bool culet_program_dormant(void)
{
#ifdef CULET_TEST
    const char *value = getenv("CULET_HARDEN");
    culet_settings.hardening = value ? culet_harden_parse(value) : 0;
    value = getenv("CULET_PROFILE");
    culet_settings.profile_bytes = value ? culet_host_parse(value) : 0;
#endif
    return false;
}

bool culet_program_mark(void)
{
    return true;
}

bool culet_program_ruby(void)
{
    return false;
}

#else

#define LIBRARY "libculet.so"
#define PRELOAD "LD_PRELOAD="
#define MARK "CULET_INHERITED=1"
#define DECAY "CULET_DECAY="
#define HARDEN "CULET_HARDEN="
#define PROFILE "CULET_PROFILE="
#define PROFILE_OUT "CULET_PROFILE_OUT="
#define PROFILE_EVERY "CULET_PROFILE_EVERY="

bool culet_program_ruby(void)
{
    return culet_host_ruby();
}

struct environment_settings {
    bool inherited;
    bool all;
};

/* At most an hour; 0 for anything else. */
static unsigned parse_seconds(const char *value)
{
    unsigned seconds = 0;

    for (; *value >= '0' && *value <= '9' && seconds <= 3600; value++)
        seconds = seconds * 10 + (unsigned)(*value - '0');
    return *value || seconds > 3600 ? 0 : seconds;
}

static void read_entry(const char *entry, struct environment_settings *settings)
{
    if (strcmp(entry, MARK) == 0)
        settings->inherited = true;
    else if (strcmp(entry, "CULET_CHILDREN=all") == 0)
        settings->all = true;
    else if (strncmp(entry, DECAY, sizeof DECAY - 1) == 0)
        culet_settings.decay_ms = culet_reclaim_parse_decay(entry + sizeof DECAY - 1);
    else if (strncmp(entry, HARDEN, sizeof HARDEN - 1) == 0)
        culet_settings.hardening = culet_harden_parse(entry + sizeof HARDEN - 1);
    else if (strncmp(entry, PROFILE, sizeof PROFILE - 1) == 0)
        culet_settings.profile_bytes = culet_host_parse(entry + sizeof PROFILE - 1);
    else if (strncmp(entry, PROFILE_OUT, sizeof PROFILE_OUT - 1) == 0)
        culet_settings.profile_out = culet_host_keep_out(entry + sizeof PROFILE_OUT - 1);
    else if (strncmp(entry, PROFILE_EVERY, sizeof PROFILE_EVERY - 1) == 0)
        culet_settings.profile_seconds = parse_seconds(entry + sizeof PROFILE_EVERY - 1);
}

/* The environment of the program's start, from the kernel: the first allocation may come before libc has an environ.
 * Entries longer than the buffer are skipped. */
static void read_environment(struct environment_settings *settings)
{
    char buffer[PATH_MAX], *at = buffer;
    bool skipping = false;
    int saved = errno, fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);

    for (;;) {
        ssize_t got = fd < 0 ? 0 : read(fd, at, (size_t)(buffer + sizeof buffer - at));
        if (got <= 0)
            break;
        char *end = at + got, *from = buffer, *zero;
        while ((zero = memchr(from, 0, (size_t)(end - from)))) {
            if (!skipping)
                read_entry(from, settings);
            skipping = false;
            from = zero + 1;
        }
        if (from == buffer && end == buffer + sizeof buffer) {
            if (!skipping && strncmp(buffer, PROFILE_OUT, sizeof PROFILE_OUT - 1) == 0)
                culet_settings.profile_out = NULL;
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
    struct environment_settings settings = {0};

    if (environ)
        for (char **entry = environ; *entry; entry++)
            read_entry(*entry, &settings);
    else
        read_environment(&settings);
    return settings.inherited && !settings.all && !culet_program_ruby();
}

/* Copies `entry`, "LD_PRELOAD=...", to `rest` without this library. Returns whether any library is left. */
static bool preload_without_us(const char *entry, char *rest)
{
    size_t name = sizeof PRELOAD - 1;
    char *to = mempcpy(rest, entry, name), *from = to;

    for (const char *at = entry + name; *at;) {
        size_t length = strcspn(at, ": "), gap = strspn(at + length, ": ");
        const char *slash = memrchr(at, '/', length), *file = slash ? slash + 1 : at;
        if (length && strncmp(file, LIBRARY, sizeof LIBRARY - 1) != 0) {
            if (to != from)
                *to++ = ':';
            to = mempcpy(to, at, length);
        }
        at += length + gap;
    }
    *to = 0;
    return to != from;
}

/* What replaces parts of the environment has pages of its own: malloc depends on this file. */
static void leave_preload(void)
{
    for (char **entry = environ; *entry; entry++) {
        if (strncmp(*entry, PRELOAD, sizeof PRELOAD - 1) != 0)
            continue;
        size_t bytes = strlen(*entry) + 1;
        char *rest = culet_os_map(bytes);
        if (!rest)
            return;
        if (preload_without_us(*entry, rest)) {
            *entry = rest;
            return;
        }
        culet_os_unmap(rest, bytes);
        do
            entry[0] = entry[1];
        while (*entry++);
        return;
    }
}

static void add_mark(void)
{
    static char mark[] = MARK;
    size_t count = 0;

    while (environ[count]) {
        if (strcmp(environ[count], MARK) == 0)
            return;
        count++;
    }
    char **longer = culet_os_map((count + 2) * sizeof *longer);
    if (!longer)
        return;
    memcpy(longer, environ, count * sizeof *longer);
    longer[count] = mark;
    longer[count + 1] = NULL;
    environ = longer;
}

static bool environment_has(const char *entry)
{
    for (char **at = environ; *at; at++)
        if (strcmp(*at, entry) == 0)
            return true;
    return false;
}

bool culet_program_mark(void)
{
    if (!environ)
        return false;
    if (environment_has("CULET_CHILDREN=none"))
        leave_preload();
    else if (!environment_has("CULET_CHILDREN=all") && culet_program_ruby())
        add_mark();
    return true;
}

#endif
