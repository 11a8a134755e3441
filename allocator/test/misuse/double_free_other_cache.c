/* expect: culet: double free of {p}: the 640-byte block {p} (size class 640) is already free */
/* Freed here, then taken into another thread's cache with its neighbours, then freed here again. */
#include "misuse.h"

static pthread_barrier_t ready;

static void *hold(void *data)
{
    /* Threads that claim take what is free; one of the freed blocks is handed out, the rest is held. */
    void **slot = data;
    *slot = malloc(640);
    pthread_barrier_wait(&ready);
    pause();
    return NULL;
}

int main(void)
{
    static void *block[64];
    void *got;
    pthread_t thread;

    for (int i = 0; i < 64; i++)
        block[i] = malloc(640);
    for (int i = 0; i < 64; i++)
        free(block[i]);
    malloc_trim(0);
    pthread_barrier_init(&ready, NULL, 2);
    need(pthread_create(&thread, NULL, hold, &got) == 0, "a thread");
    pthread_barrier_wait(&ready);
    void *p = (char *)got + 640;
    name("p", p);
    free(p);
}
