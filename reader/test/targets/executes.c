/* usage: executes THREADS [main]
 *
 * Calls exec on itself again and again, in a thread that takes over the main thread's number, or in the main thread,
 * while the others run. Counts in the word mapped from standard input. */
#include "target.h"

#include <sys/mman.h>
#include <sys/prctl.h>

static char **words;

static void *work(void *unused)
{
    void *block = NULL;

    (void)unused;
    for (;;) {
        free(block);
        block = malloc(100);
        usleep(50);
    }
    return NULL;
}

static void *execute(void *unused)
{
    (void)unused;
    usleep(2000);
    execv("/proc/self/exe", words);
    _exit(8);
}

int main(int argc, char **argv)
{
    unsigned threads = (unsigned)atoi(argv[1]);
    _Atomic uint64_t *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, STDIN_FILENO, 0);
    pthread_t thread;

    /* A thread that executes a program does not take over that its parent's end is its own. */
    char parent[16];
    snprintf(parent, sizeof parent, "%d", (int)getppid());
    setenv("PARENT", parent, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || strcmp(getenv("PARENT"), parent) != 0)
        return 11;
    words = argv;
    if (count == MAP_FAILED)
        return 9;
    atomic_fetch_add(count, 1);
    for (unsigned i = 1; i < threads; i++)
        if (pthread_create(&thread, NULL, work, NULL))
            return 10;
    if (argc > 2)
        execute(NULL);
    if (pthread_create(&thread, NULL, execute, NULL))
        return 10;
    work(NULL);
    return 0;
}
