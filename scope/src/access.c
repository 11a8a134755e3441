#define _GNU_SOURCE
#include "access.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file's first number; -1 where there is none. */
static long number_in(const char *name)
{
    char text[64];
    FILE *file = fopen(name, "re");
    long number = file && fgets(text, sizeof text, file) ? strtol(text, NULL, 10) : -1;

    if (file)
        fclose(file);
    return number;
}

/* The user who owns the process: of its status file, which tells the true one for processes that hide. */
static uid_t owner_of(pid_t pid)
{
    char name[64], line[256];
    long uid = -1;

    snprintf(name, sizeof name, "/proc/%d/status", (int)pid);
    FILE *file = fopen(name, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "Uid:", 4) == 0)
            uid = strtol(line + 4, NULL, 10);
    if (file)
        fclose(file);
    return (uid_t)uid;
}

static void name_of(uid_t uid, char *name, size_t bytes)
{
    struct passwd *user = getpwuid(uid);

    if (user)
        snprintf(name, bytes, "%s", user->pw_name);
    else
        snprintf(name, bytes, "number %u", (unsigned)uid);
}

void culet_access_why(pid_t pid, int refused, char *sentence, size_t bytes)
{
    char user[64];
    uid_t owner = owner_of(pid);
    long yama = number_in("/proc/sys/kernel/yama/ptrace_scope");

    if (geteuid() != 0 && owner != geteuid()) {
        name_of(owner, user, sizeof user);
        snprintf(sentence, bytes, "process %d belongs to another user (%s); ask as that user, or as root: sudo",
                 (int)pid, user);
    } else if (refused == ENOSYS) {
        snprintf(sentence, bytes, "a sandbox (seccomp) keeps this program from reading other processes; in a "
                 "container, start it with --cap-add SYS_PTRACE, or ask from the host");
    } else if (geteuid() == 0) {
        snprintf(sentence, bytes, "this container does not let root read process %d; start it with --cap-add "
                 "SYS_PTRACE, or ask from the host", (int)pid);
    } else if (yama == 1) {
        snprintf(sentence, bytes, "the kernel lets only a parent or root read process %d (Yama, "
                 "kernel.yama.ptrace_scope is 1); ask as root: sudo, or allow it until the next boot: "
                 "sudo sysctl kernel.yama.ptrace_scope=0", (int)pid);
    } else if (yama >= 2) {
        snprintf(sentence, bytes, "the kernel lets %s read other processes (Yama, kernel.yama.ptrace_scope is %ld)%s",
                 yama == 2 ? "only root" : "nobody", yama,
                 yama == 2 ? "; ask as root: sudo" : "; that lasts until the next boot");
    } else {
        snprintf(sentence, bytes, "process %d does not let itself be read (it changed its user, has capabilities, or "
                 "asked for it: not \"dumpable\"); ask as root: sudo", (int)pid);
    }
}
