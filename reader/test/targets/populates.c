/* usage: populates MEGABYTES
 *
 * A thread has the kernel populate so many megabytes of new memory, again and again, and does not stop until this is
 * done. Prints malloc's figures once the thread is at work. */
#include "target.h"

#include <sys/mman.h>

static size_t bytes;
static _Atomic unsigned times;

static void *populate(void *unused)
{
    for (;;) {
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (memory == MAP_FAILED || munmap(memory, bytes) != 0)
            _exit(8);
        times++;
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    bytes = (size_t)atoi(argc > 1 ? argv[1] : "1") << 20;
    for (unsigned i = 0; i < 20000; i++)
        memset(malloc(100 + i % 500), 1, 100);
    if (pthread_create(&thread, NULL, populate, NULL))
        return 10;
    while (!times)
        usleep(1000);
    print_malloc_info();
    for (;;)
        pause();
}
