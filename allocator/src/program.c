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
#include <sys/auxv.h>
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
#define CHILDREN "CULET_CHILDREN="
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

/* Variables whose value is not accepted, a bit each, of the sentences that report them. */
static unsigned refused;
enum { REFUSED_CHILDREN, REFUSED_DECAY, REFUSED_HARDEN, REFUSED_PROFILE, REFUSED_EVERY, REFUSED_COUNT };
static const char *const refusals[REFUSED_COUNT] = {
    "culet: CULET_CHILDREN takes ruby, all or none; ruby is used\n",
    "culet: CULET_DECAY takes milliseconds from 10 to 3600000; 500 is used\n",
    "culet: CULET_HARDEN takes a level from 0 to 3; the program is not hardened\n",
    "culet: CULET_PROFILE takes a size such as 512k or 1m; the memory profile is off\n",
    "culet: CULET_PROFILE_EVERY takes seconds up to 3600; no file is written before the end\n"};

/* At most an hour; 0 for anything else. */
static unsigned parse_seconds(const char *value)
{
    unsigned seconds = 0;

    for (; *value >= '0' && *value <= '9' && seconds <= 3600; value++)
        seconds = seconds * 10 + (unsigned)(*value - '0');
    return *value || seconds > 3600 ? 0 : seconds;
}

/* The value of a variable whose name ends in "="; NULL: the entry has another one. */
static const char *value_in(const char *entry, const char *name)
{
    return strncmp(entry, name, strlen(name)) == 0 ? entry + strlen(name) : NULL;
}

static bool is_zero(const char *value)
{
    return !value[strspn(value, "0")];
}

static void check(unsigned variable, bool accepted)
{
    refused |= (unsigned)!accepted << variable;
}

static void read_entry(const char *entry, struct environment_settings *settings)
{
    const char *value;

    if (strcmp(entry, MARK) == 0) {
        settings->inherited = true;
    } else if ((value = value_in(entry, CHILDREN))) {
        settings->all = strcmp(value, "all") == 0;
        check(REFUSED_CHILDREN, settings->all || !*value || strcmp(value, "ruby") == 0 || strcmp(value, "none") == 0);
    } else if ((value = value_in(entry, DECAY))) {
        unsigned ms = culet_reclaim_parse_decay(value);
        culet_settings.decay_ms = ms ? ms : CULET_DECAY_MS;
        check(REFUSED_DECAY, ms || !*value);
    } else if ((value = value_in(entry, HARDEN))) {
        culet_settings.hardening = culet_harden_parse(value);
        check(REFUSED_HARDEN, culet_settings.hardening || is_zero(value));
    } else if ((value = value_in(entry, PROFILE))) {
        culet_settings.profile_bytes = culet_host_parse(value);
        check(REFUSED_PROFILE, culet_settings.profile_bytes || is_zero(value));
    } else if ((value = value_in(entry, PROFILE_OUT))) {
        culet_settings.profile_out = culet_host_keep_out(value);
    } else if ((value = value_in(entry, PROFILE_EVERY))) {
        culet_settings.profile_seconds = parse_seconds(value);
        check(REFUSED_EVERY, culet_settings.profile_seconds || is_zero(value));
    }
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
    if (settings.inherited)
        refused = 0; /* the Ruby process that set the mark has reported them */
    return settings.inherited && !settings.all && !culet_program_ruby();
}

/* In Ruby, culet/profile reports its variable. */
void culet_program_report(void)
{
    for (unsigned i = 0; i < REFUSED_COUNT; i++)
        if (refused >> i & 1 && !getauxval(AT_SECURE) && !(i == REFUSED_PROFILE && culet_program_ruby()))
            culet_host_complain(refusals[i]);
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
