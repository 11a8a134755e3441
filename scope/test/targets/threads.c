/* usage: threads COUNT
 *
 * So many threads, each with blocks of its own, that wait. Says what malloc knows, and stops. */
#include "target.h"

static pthread_barrier_t ready;

static void *wait(void *unused)
{
    memset(malloc(1000), 1, 1000);
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
        if (pthread_create(&thread, &attributes, wait, NULL))
            return 10;
    pthread_barrier_wait(&ready);
    say_and_stop();
    return 0;
}
