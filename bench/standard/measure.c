// measure FILE COMMAND [ARGUMENT ...]
//
// Runs the command, ends as it ended, and writes its figures to FILE as one line of JSON: wall time, CPU time, and peak
// RSS as wait4(2) reports it. The kernel starts that peak at the size of the process that forked, so this is a small one.
// The command ends with this process, and this one with its parent.

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        errx(2, "usage: measure FILE COMMAND [ARGUMENT ...]");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    double start = now();
    pid_t child = fork();
    if (child < 0)
        err(1, "fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(argv[2], argv + 2);
        warn("%s", argv[2]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    while (wait4(child, &status, 0, &usage) < 0)
        if (errno != EINTR)
            err(1, "wait4");
    double wall = now() - start;
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    if (WEXITSTATUS(status) != 0)
        return WEXITSTATUS(status);
    FILE *file = fopen(argv[1], "w");
    if (!file)
        err(1, "%s", argv[1]);
    fprintf(file, "{\"wall_seconds\": %.6f, \"cpu_seconds\": %.6f, \"peak_rss_bytes\": %lld}\n", wall,
            seconds(usage.ru_utime) + seconds(usage.ru_stime), (long long)usage.ru_maxrss * 1024);
    if (fclose(file) != 0)
        err(1, "%s", argv[1]);
    return 0;
}
