/* Fills heaps in four threads, frees most, and stops. When continued, calls malloc_trim(0) and stops again. */
#include "target.h"

static pthread_barrier_t filled;

static void *fill(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    static __thread void *blocks[60000];

    for (int i = 0; i < 60000; i++) {
        size_t bytes = next_random(&random) % 50 ? next_random(&random) % 300 : next_random(&random) % 30000;
        blocks[i] = malloc(bytes + 1);
        memset(blocks[i], 1, bytes + 1);
    }
    for (int i = 0; i < 60000; i++)
        if (next_random(&random) % 10 < 8 || i / 3000 % 2)
            free(blocks[i]);
    pthread_barrier_wait(&filled);
    if (argument != (void *)1)
        pause();
    return NULL;
}

int main(void)
{
    pthread_barrier_init(&filled, NULL, 4);
    for (uintptr_t i = 2; i <= 4; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, fill, (void *)i))
            return 3;
    }
    fill((void *)1);
    print_and_stop();
    malloc_trim(0);
    print_and_stop();
    return 0;
}
