/* usage: threads COUNT
 *
 * So many threads that wait. Says its line when all do. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t ready;

static void *stay(void *unused)
{
    pthread_barrier_wait(&ready);
    for (;;)
        pause();
    return unused;
}

int main(int argc, char **argv)
{
    unsigned count = (unsigned)atoi(argc > 1 ? argv[1] : "1");
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_barrier_init(&ready, NULL, count);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (unsigned i = 1; i < count; i++)
        if (pthread_create(&thread, &attributes, stay, NULL))
            return 1;
    pthread_barrier_wait(&ready);
    puts("end");
    fflush(stdout);
    for (;;)
        pause();
}
