#define _GNU_SOURCE
#include "process/access.h"

#include "process/proc.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Yama's level; -1: no Yama. */
static long yama_level(void)
{
    char line[64];

    return culet_proc_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof line) ? strtol(line, NULL, 10) : -1;
}

/* The user of the process. The status file has it for processes that are not dumpable, too. */
static uid_t user_of(pid_t pid)
{
    long uid = -1;

    culet_proc_number(culet_proc_path("/proc/%d/status", (int)pid).text, "Uid", &uid);
    return (uid_t)uid;
}

static void user_name(uid_t uid, char *name, size_t bytes)
{
    struct passwd *user = getpwuid(uid);

    if (user)
        snprintf(name, bytes, "%s", user->pw_name);
    else
        snprintf(name, bytes, "number %u", (unsigned)uid);
}

void culet_access_explain(pid_t pid, int error, char *sentence, size_t bytes)
{
    char name[64];
    uid_t user = user_of(pid);
    long yama = yama_level();

    if (geteuid() != 0 && user != geteuid()) {
        user_name(user, name, sizeof name);
        snprintf(sentence, bytes, "process %d belongs to another user (%s); run this as that user or as root (sudo)",
                 (int)pid, name);
    } else if (error == ENOSYS) {
        snprintf(sentence, bytes,
                 "a sandbox (seccomp) keeps this program from reading other processes; start the "
                 "container with --cap-add SYS_PTRACE, or run this on the host");
    } else if (geteuid() == 0) {
        snprintf(sentence, bytes,
                 "this container does not let root read process %d; start it with --cap-add "
                 "SYS_PTRACE, or run this on the host",
                 (int)pid);
    } else if (yama == 1) {
        snprintf(sentence, bytes,
                 "the kernel lets only a parent or root read process %d (Yama, "
                 "kernel.yama.ptrace_scope is 1); run this as root (sudo), or allow it until the next boot: "
                 "sudo sysctl kernel.yama.ptrace_scope=0",
                 (int)pid);
    } else if (yama >= 2) {
        snprintf(sentence, bytes, "the kernel lets %s read other processes (Yama, kernel.yama.ptrace_scope is %ld)%s",
                 yama == 2 ? "only root" : "nobody", yama,
                 yama == 2 ? "; run this as root (sudo)" : "; this stays so until the next boot");
    } else {
        snprintf(sentence, bytes,
                 "process %d is not dumpable: it changed its user, has capabilities, or asked for "
                 "it; run this as root (sudo)",
                 (int)pid);
    }
}
