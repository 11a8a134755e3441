/* expect: culet: double free of {p}: the 640-byte block {p} (size class 640) is already free */
/* The block was never handed out: it lies in another thread's cache. */
#include "misuse.h"

static pthread_barrier_t ready;
static char *first;

static void *hold(void *unused)
{
    (void)unused;
    first = malloc(640);
    pthread_barrier_wait(&ready);
    pause();
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&ready, NULL, 2);
    need(pthread_create(&thread, NULL, hold, NULL) == 0, "a thread");
    pthread_barrier_wait(&ready);
    name("p", first + 640);
    free(first + 640);
}
