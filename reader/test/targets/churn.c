/* usage: churn THREADS MEGABYTES [fork | exit | exec | trim]
 *
 * Allocates and frees for ever in all threads, and counts in the word mapped from standard input. fork: also forks
 * and waits for the child, again and again. exit, exec: does so as soon as the second word is not zero, after so
 * many microseconds. */
#include "target.h"

#include <sys/mman.h>
#include <sys/wait.h>

static _Atomic uint64_t *count;
static size_t share;

static void *churn(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    size_t room = share / 600 + 1;
    void **blocks = calloc(room, sizeof *blocks);

    for (;;) {
        size_t at = next_random(&random) % room, bytes = 1 + next_random(&random) % 1100;
        free(blocks[at]);
        if (next_random(&random) % 4000 == 0)
            bytes *= 300;
        blocks[at] = malloc(bytes);
        memset(blocks[at], 1, bytes < 64 ? bytes : 64);
        /* A test must not keep the machine busy for all others. */
        if (atomic_fetch_add_explicit(count, 1, memory_order_relaxed) % 2000 == 0)
            usleep(500);
    }
    return NULL;
}

static void do_besides(const char *what, char **argv)
{
    if (strcmp(what, "fork") == 0)
        for (;;) {
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            if (waitpid(child, NULL, 0) != child)
                _exit(7);
        }
    while (atomic_load(&count[1]) == 0)
        usleep(200);
    usleep((useconds_t)atomic_load(&count[1]));
    if (strcmp(what, "exit") == 0)
        _exit(0);
    if (strcmp(what, "exec") == 0) {
        char *again[] = {argv[0], argv[1], argv[2], NULL};
        execv(argv[0], again);
        _exit(8);
    }
}

int main(int argc, char **argv)
{
    unsigned threads = (unsigned)atoi(argv[1]);

    count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, STDIN_FILENO, 0);
    if (count == MAP_FAILED)
        return 9;
    share = ((size_t)atoi(argv[2]) << 20) / threads;
    for (unsigned i = 1; i <= threads; i++) {
        pthread_t thread;
        if (i == threads && argc < 4)
            churn((void *)(uintptr_t)i);
        if (pthread_create(&thread, NULL, churn, (void *)(uintptr_t)i))
            return 10;
    }
    do_besides(argv[3], argv);
    pause();
    return 0;
}
