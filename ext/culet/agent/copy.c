/*
 * Two forks, of which the first child ends at once: the copy is not the program's child, so Process.wait and
 * Process.waitall never return it. GC stays disabled in the copy, because objects that only other threads reference
 * would count as garbage there, and freeing them may end a connection that is shared with the program.
 */
#include "agent/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/unused_reporter.h"
#include "common/filter.h"
#include "common/io.h"

#define CPU_SECONDS 60
#define NICE 10

static VALUE call_document(VALUE numbers)
{
    const long *pids = (const long *)numbers;

    return rb_funcall(culet_unused_reporter(), rb_intern("document"), 2, LONG2NUM(pids[0]), LONG2NUM(pids[1]));
}

VALUE
culet_copy_follow_unused(VALUE unused)
{
    if (rb_respond_to(culet_unused_reporter(), rb_intern("follow")))
        rb_funcall(culet_unused_reporter(), rb_intern("follow"), 0);
    return Qnil;
}

/* Whether culet/unused is active in the program. */
static int is_followed(void)
{
    return rb_respond_to(culet_unused_reporter(), rb_intern("started?")) &&
           RTEST(rb_funcall(culet_unused_reporter(), rb_intern("started?"), 0));
}

/* ---- in the copy ---- */

/* Otherwise the peer would not see that the program closed the connection. */
static void close_sockets(void)
{
    DIR *list = opendir("/proc/self/fd");
    struct dirent *entry;
    struct stat stat;

    if (list == NULL)
        return;
    while ((entry = readdir(list)) != NULL) {
        int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO && fd != dirfd(list) && fstat(fd, &stat) == 0 && S_ISSOCK(stat.st_mode))
            close(fd);
    }
    closedir(list);
}

/* The copy yields memory and processor to the program. */
static void lower_priority(void)
{
    const struct rlimit limit = {CPU_SECONDS, CPU_SECONDS};
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        close(fd);
    }
    if (!culet_filtered())
        (void)setpriority(PRIO_PROCESS, 0, NICE);
    (void)prlimit(0, RLIMIT_CPU, &limit, NULL); /* SIGXCPU is blocked; the hard limit kills */
    (void)prctl(PR_SET_NAME, "culet-unused", 0, 0, 0);
}

static void write_report(const long *pids, int output, int status_pipe)
{
    pid_t own = getpid();
    int failure = 0;
    VALUE document;

#ifdef HAVE_RB_THREAD_ATFORK
    rb_thread_atfork();
#endif
    close_sockets();
    lower_priority();
    if (culet_write_all(status_pipe, &own, sizeof(own)) != 0)
        return;
    document = rb_protect(call_document, (VALUE)pids, &failure);
    if (!failure && culet_write_all(output, RSTRING_PTR(document), (size_t)RSTRING_LEN(document)) == 0)
        (void)culet_write_all(status_pipe, "", 1);
}

/* ---- in the program ---- */

static pid_t fork_copy(int output, int status_pipe)
{
    const long pids[] = {getpid(), getppid()};
    pid_t half = fork();

    if (half != 0)
        return half;
    if (fork() == 0)
        write_report(pids, output, status_pipe);
    _exit(0);
}

/* With signals blocked, the program's handlers do not run in the copy. */
static pid_t fork_undisturbed(int output, int status_pipe)
{
    sigset_t all, before;
    pid_t half;
    int was_off;

    sigfillset(&all);
    was_off = RTEST(rb_gc_disable()); /* also finishes a sweep in progress */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    half = fork_copy(output, status_pipe);
    if (half > 0)
        while (waitpid(half, NULL, 0) < 0 && errno == EINTR)
            continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!was_off)
        rb_gc_enable();
    return half;
}

const char *culet_copy_start(struct culet_copy *copy)
{
    int ends[2];
    pid_t half;

#ifndef HAVE_RB_THREAD_ATFORK
    return "its Ruby does not support the forked copy";
#endif
    if (!is_followed())
        return "it does not follow which of its code runs; start it with RUBYOPT=-r$(culet lib unused) in its "
               "environment";
    copy->output = memfd_create("culet-unused", MFD_CLOEXEC);
    if (copy->output < 0)
        return "no descriptor or memory is left for the answer";
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        close(copy->output);
        return "no descriptor is left for the answer";
    }
    half = fork_undisturbed(copy->output, ends[1]);
    close(ends[1]);
    copy->status = ends[0];
    if (half > 0)
        return NULL;
    close(copy->status);
    close(copy->output);
    return "it cannot fork: memory or its limit of processes is exhausted";
}
