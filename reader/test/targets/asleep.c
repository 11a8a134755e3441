/* usage: asleep MEGABYTES
 *
 * A thread is in uninterruptible sleep: it waits for the child of a vfork, which ends only with its parent. Prints a
 * line when it is. */
#include "target.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

static void *wait_for_child(void *unused)
{
    (void)unused;
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            syscall(SYS_pause);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 1) << 20;
    pthread_t thread;
    struct timespec moment = {.tv_nsec = 50000000};

    for (size_t done = 0; done < bytes; done += 1000)
        memset(malloc(1000), 1, 1000);
    if (pthread_create(&thread, NULL, wait_for_child, NULL) != 0)
        _exit(3);
    nanosleep(&moment, NULL);
    if (write(STDOUT_FILENO, "asleep\n", 7) != 7)
        _exit(3);
    for (;;)
        pause();
}
