/* usage: headless frozen | relay
 *
 * Its main thread ends, others go on. frozen: the other thread prints malloc's figures and stops the process. relay:
 * each thread starts the next one and ends, for ever; they count in the word mapped from standard input. */
#include "target.h"

#include <stdbool.h>
#include <sys/mman.h>

static _Atomic uint64_t *count;

/* Until the kernel shows the main thread as ended. */
static void await_end_of_main(void)
{
    char name[64], text[512], *at;

    snprintf(name, sizeof name, "/proc/self/task/%d/stat", (int)getpid());
    do {
        FILE *file = fopen(name, "r");
        size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
        if (file)
            fclose(file);
        text[length] = 0;
        at = strrchr(text, ')');
    } while (at && at[2] != 'Z' && usleep(1000) == 0);
}

static void *freeze(void *unused)
{
    for (unsigned i = 0; i < 20000; i++)
        memset(malloc(100 + i % 500), 1, 100);
    await_end_of_main();
    print_and_stop();
    return unused;
}

static void *relay(void *unused)
{
    pthread_t thread;
    pthread_attr_t attributes;

    for (unsigned i = 0; i < 20; i++)
        free(malloc(100 + i));
    usleep(1000);
    atomic_fetch_add(count, 1);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while (pthread_create(&thread, &attributes, relay, NULL) != 0)
        usleep(1000);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    bool frozen = argc > 1 && strcmp(argv[1], "frozen") == 0;

    if (!frozen) {
        count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, STDIN_FILENO, 0);
        if (count == MAP_FAILED)
            return 9;
    }
    for (unsigned i = 0; i < (frozen ? 1 : 2); i++)
        if (pthread_create(&thread, NULL, frozen ? freeze : relay, NULL))
            return 10;
    pthread_exit(NULL);
}
