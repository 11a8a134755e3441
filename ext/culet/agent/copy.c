/* The copy is the child of a helper that shares the program's memory and ends at once: the program's Process.wait never
 * returns the copy, and memory is copied once. GC stays disabled in the copy, because objects that only other threads
 * reference would count as garbage there, and freeing them may end a connection that is shared with the program. */
#include "agent/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/filter.h"
#include "common/io.h"
#include "common/vm_lock.h"
#include "reading/clock.h"

#define SPARE_SECONDS 15 /* from the limit of CPU time to the end of a copy that waits for a lock */
#define NICE 10
#define MAX_ANSWER_BYTES ((rlim_t)16 << 30)
#define HELPER_STACK_BYTES (64 * 1024)

/* ---- in the copy ---- */

/* Other processes wait until the program closes its sockets, pipes and locked files. Descriptors without a file type
 * stay, such as the eventfd of the timer thread that rb_thread_atfork starts. */
static void close_inherited(int output, int status_pipe)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    DIR *list = opendir("/proc/self/fd");
    struct dirent *entry;
    struct stat stat;

    if (list == NULL)
        return;
    while ((entry = readdir(list)) != NULL) {
        int fd = atoi(entry->d_name);
        if (fd == output || fd == status_pipe || fd == dirfd(list) || fd == nowhere || fstat(fd, &stat) != 0 ||
            (stat.st_mode & S_IFMT) == 0)
            continue;
        if (fd > STDERR_FILENO)
            close(fd);
        else if (nowhere >= 0)
            (void)dup2(nowhere, fd);
    }
    closedir(list);
}

/* The copy ends whatever happens to the program: another thread may have had a library's lock when it was copied, for
 * which a mark function waits forever. */
static void limit_resources(double seconds)
{
    rlim_t whole = (rlim_t)seconds + 1;
    const struct rlimit time = {whole, whole}, file = {MAX_ANSWER_BYTES, MAX_ANSWER_BYTES};
    sigset_t ends;

    (void)prlimit(0, RLIMIT_CPU, &time, NULL);   /* SIGXCPU is blocked; the hard limit kills */
    (void)prlimit(0, RLIMIT_FSIZE, &file, NULL); /* SIGXFSZ is blocked; write fails */
    signal(SIGALRM, SIG_DFL);
    sigemptyset(&ends);
    sigaddset(&ends, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
    alarm((unsigned)whole + SPARE_SECONDS);
}

/* The copy yields memory and processor to the program. */
static void lower_priority(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        close(fd);
    }
    if (!culet_filtered())
        (void)setpriority(PRIO_PROCESS, 0, NICE);
}

static void write_answer(const struct culet_copy_task *task, const long *pids, double fork_seconds, int output,
                         int status_pipe)
{
    pid_t own = getpid();
    const char *problem;
    char status = CULET_COPY_ANSWER;

    if (task->runs_ruby)
        rb_thread_atfork();
    close_inherited(output, status_pipe);
    lower_priority();
    limit_resources(task->limit_seconds);
    if (culet_write_all(status_pipe, &own, sizeof(own)) != 0)
        return;
    problem = task->make(task, pids, fork_seconds, output);
    if (problem != NULL) {
        status = CULET_COPY_ERROR;
        if (ftruncate(output, 0) != 0 || lseek(output, 0, SEEK_SET) != 0 ||
            culet_write_all(output, problem, strlen(problem)) != 0)
            return;
    }
    (void)culet_write_all(status_pipe, &status, 1);
}

/* ---- in the program ---- */

struct forking {
    const struct culet_copy_task *task;
    int output, status_pipe;
    char *helper_stack;
    long pids[2]; /* of the program and its parent */
    double start;
    void *resume[5]; /* where the copy goes on: __builtin_setjmp's */
    int succeeded;
};

/* The helper, on its own stack. fork, unlike a raw clone, runs the handlers of malloc, so that the copy may allocate.
 * The copy goes back to the stack of the thread that asked: Ruby takes what is between the beginning of the thread's
 * stack and the stack pointer for references. */
static int fork_in_helper(void *data)
{
    struct forking *forking = data;
    pid_t copy;

    /* The copy inherits this name, which marks it and the helper as processes of culet. */
    (void)prctl(PR_SET_NAME, forking->task->name, 0, 0, 0);
    copy = fork();
    if (copy == 0)
        __builtin_longjmp(forking->resume, 1);
    forking->succeeded = copy > 0;
    _exit(0);
}

/* The helper has this thread's memory and thread variables, and this thread waits meanwhile, so its frame is whole in
 * the copy. A child that sends no signal when it ends is seen by __WCLONE only, not by the program's own waits. */
static void fork_copy(void *data)
{
    struct forking *volatile forking = data;
    pid_t helper;

    if (__builtin_setjmp(forking->resume) != 0) {
        write_answer(forking->task, forking->pids, culet_seconds_since(forking->start), forking->output,
                     forking->status_pipe);
        _exit(0);
    }
    helper = clone(fork_in_helper, forking->helper_stack + HELPER_STACK_BYTES, CLONE_VM | CLONE_VFORK, forking);
    if (helper > 0)
        while (waitpid(helper, NULL, __WCLONE) < 0 && errno == EINTR)
            continue;
}

/* With signals blocked, the program's handlers do not run in the copy. Other Ractors are stopped: one that had a lock
 * of the VM would keep it in the copy. */
static int fork_undisturbed(const struct culet_copy_task *task, int output, int status_pipe)
{
    struct forking forking = {
        .task = task, .output = output, .status_pipe = status_pipe, .pids = {getpid(), getppid()}};
    sigset_t all, before;
    int was_off, several = culet_vm_several_ractors();

    /* Not on this thread's stack: a fiber may have little stack left, next to the stack of another fiber. */
    forking.helper_stack =
        mmap(NULL, HELPER_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (forking.helper_stack == MAP_FAILED)
        return 0;
    sigfillset(&all);
    was_off = RTEST(rb_gc_disable()); /* also finishes a sweep in progress */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    forking.start = culet_clock_seconds(CLOCK_MONOTONIC);
    if (several)
        culet_vm_locked(fork_copy, &forking);
    else
        fork_copy(&forking);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!was_off)
        rb_gc_enable();
    munmap(forking.helper_stack, HELPER_STACK_BYTES);
    return forking.succeeded;
}

/* Opens a file on the disk, with or without O_TMPFILE, which overlayfs lacks before Linux 6.3. Returns -1 on failure. */
static int open_on_disk(void)
{
    char path[] = "/var/tmp/culet-XXXXXX";
    int file = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (file < 0 && (file = mkostemp(path, O_CLOEXEC)) >= 0)
        unlink(path);
    return file;
}

/* Opens a file without a name for the answer. Returns -1 on failure. */
static int open_output(const struct culet_copy_task *task)
{
    int file = task->is_large ? open_on_disk() : -1;

    return file >= 0 ? file : memfd_create(task->name, MFD_CLOEXEC);
}

void culet_copy_close(struct culet_copy *copy)
{
    if (copy->status >= 0)
        close(copy->status);
    if (copy->output >= 0)
        close(copy->output);
    *copy = CULET_NO_COPY;
}

const char *culet_copy_start(struct culet_copy *copy, const struct culet_copy_task *task)
{
    int ends[2], succeeded;

    *copy = CULET_NO_COPY;
    copy->output = open_output(task);
    if (copy->output < 0)
        return "no descriptor or memory is left for the answer";
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        culet_copy_close(copy);
        return "no descriptor is left for the answer";
    }
    succeeded = fork_undisturbed(task, copy->output, ends[1]);
    close(ends[1]);
    copy->status = ends[0];
    if (succeeded)
        return NULL;
    culet_copy_close(copy);
    return "it cannot fork: memory or its limit of processes is exhausted";
}
