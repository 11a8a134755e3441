/* Fills the heaps of the main arena and another one, overwrites a chunk's size in the middle of main's, and stops. */
#include "target.h"

static pthread_barrier_t filled;

static void *fill(void *argument)
{
    void *last = NULL;

    (void)argument;
    for (int i = 0; i < 20000; i++)
        last = malloc(200);
    pthread_barrier_wait(&filled);
    pause();
    return last;
}

int main(void)
{
    static size_t *blocks[20000];
    pthread_t thread;

    pthread_barrier_init(&filled, NULL, 2);
    if (pthread_create(&thread, NULL, fill, NULL))
        return 3;
    for (int i = 0; i < 20000; i++)
        blocks[i] = malloc(200);
    pthread_barrier_wait(&filled);
    blocks[10000][-1] = 0x12345678;
    print_and_stop();
    return 0;
}
