/* fork.c - repeated forks while other threads allocate and free. A child that hangs is counted and ends the probe; so
 * does a block that was returned twice by malloc, in the parent or a child. */
#define _GNU_SOURCE
#include "probe.h"

static struct parameter parameters[] = {
    {"forks", 20000, "forks in all"},
    {"threads", 4, "threads that allocate and free meanwhile"},
    {"patience", 20, "seconds after which a child counts as hanging"},
    {0},
};
enum { FORKS, THREADS, PATIENCE };

#define SLOTS 256 /* per thread */
#define DAMAGED 3 /* a child's exit status */

static _Atomic(void *) slot[MAX_THREADS][SLOTS];
static atomic_bool stop;
static atomic_ulong damaged;
static bool is_child;

/* Mostly small, some medium, few large. */
static size_t some_size(uint64_t random)
{
    uint64_t kind = random % 256, n = random >> 8;

    return 16 + (kind == 0 ? n % 300000 : kind < 8 ? n % 40000 : n % 1500);
}

/* With its address at both ends, to detect a block that malloc returned twice. */
static void *marked(uint64_t random)
{
    size_t bytes = some_size(random);
    char *block = malloc(bytes);

    if (!block)
        give_up("malloc(%zu) gave nothing", bytes);
    memcpy(block, &block, sizeof block);
    memcpy(block + bytes - sizeof block, &block, sizeof block);
    return block;
}

static void give_back(void *block)
{
    void *mark;

    if (!block)
        return;
    memcpy(&mark, block, sizeof mark);
    if (mark != block) {
        if (is_child)
            _exit(DAMAGED);
        atomic_fetch_add(&damaged, 1);
    }
    memset(block, 0, sizeof mark);
    keep_writes(block);
    free(block);
}

/* Replaces blocks in its own slots and its neighbour's, so that half are freed by another thread. */
static void *churn(void *data)
{
    size_t self = (uintptr_t)data;
    uint64_t random = self + 1;

    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        uint64_t some = next_random(&random);
        size_t whose = (self + (some >> 63)) % parameters[THREADS].value;
        give_back(atomic_exchange(&slot[whose][some >> 32 & (SLOTS - 1)], marked(some)));
    }
    return NULL;
}

static void free_slots(void)
{
    for (size_t t = 0; t < parameters[THREADS].value; t++)
        for (size_t i = 0; i < SLOTS; i++)
            give_back(atomic_exchange(&slot[t][i], NULL));
}

static _Noreturn void live_as_child(uint64_t random)
{
    is_child = true;
    for (int i = 0; i < 100; i++)
        give_back(atomic_exchange(&slot[0][i], marked(next_random(&random))));
    free_slots();
    _exit(0);
}

/* The child's wait status, or -1 when it hung and was ended. */
static int wait_for(pid_t child)
{
    double until = seconds(CLOCK_MONOTONIC) + (double)parameters[PATIENCE].value, left;
    sigset_t ended;
    int status = 0;

    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    while ((left = until - seconds(CLOCK_MONOTONIC)) > 0) {
        struct timespec rest = {.tv_sec = (time_t)left, .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
        pid_t got = waitpid(child, &status, WNOHANG);
        if (got == child)
            return status;
        if (got < 0)
            give_up("waitpid: %s", strerror(errno));
        if (sigtimedwait(&ended, NULL, &rest) < 0 && errno != EAGAIN && errno != EINTR)
            give_up("sigtimedwait: %s", strerror(errno));
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}

/* Blocks SIGCHLD, in the threads to come as well, so that wait_for finds it pending. */
static void block_child_signals(void)
{
    sigset_t ended;

    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &ended, NULL) != 0)
        give_up("sigprocmask: %s", strerror(errno));
}

/* fork can hang in the parent too: then SIGALRM prints the figures. */
static volatile sig_atomic_t forked;
static const char *malloc_path;

static void parent_hangs(int signal)
{
    static char text[4096];
    (void)signal;
    int length =
        snprintf(text, sizeof text,
                 "{\"probe\":\"fork\",\"malloc\":\"%s\",\"figures\":{\"forks\":%ld,\"hangs\":1,\"damaged\":%lu}}\n",
                 malloc_path, (long)forked, atomic_load(&damaged));
    _exit(write(1, text, (size_t)length) == length ? 0 : 1);
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    unsigned threads = (unsigned)at_most(parameters[THREADS].value, MAX_THREADS, "threads");
    long forks = (long)at_most(parameters[FORKS].value, 1u << 30, "forks"), hangs = 0;
    pthread_t thread[MAX_THREADS];
    uint64_t random = 42;

    malloc_path = malloc_file(); /* dladdr is not safe in a signal handler */
    signal(SIGALRM, parent_hangs);
    block_child_signals();
    struct watch watch = start_watch();
    for (unsigned t = 0; t < threads; t++)
        thread[t] = start_thread(churn, (void *)(uintptr_t)t);
    while (forked < forks && hangs == 0 && atomic_load(&damaged) == 0) {
        alarm(2 * (unsigned)parameters[PATIENCE].value);
        pid_t child = fork_child();
        if (child == 0)
            live_as_child(next_random(&random));
        next_random(&random);
        forked++;
        int status = wait_for(child);
        if (status == -1)
            hangs++;
        else if (WIFEXITED(status) && WEXITSTATUS(status) == DAMAGED)
            atomic_fetch_add(&damaged, 1);
        else if (status != 0)
            give_up("the child after %ld forks ended with wait status 0x%x", (long)forked, (unsigned)status);
    }
    if (hangs == 0) { /* after a hang, the threads may hang too */
        atomic_store(&stop, true);
        for (unsigned t = 0; t < threads; t++)
            join_thread(thread[t]);
        free_slots();
    }
    alarm(0);
    watch = stop_watch(watch);
    figure("forks", (double)forked);
    figure("hangs", (double)hangs);
    figure("damaged", (double)atomic_load(&damaged));
    figure("wall_seconds", watch.wall);
    print_figures("fork");
    _exit(0);
}
