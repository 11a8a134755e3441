/* mappings.c - a program with one mapping of every kind, and threads; prints where they are, then stops itself. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES 65536

static char zeroes[1 << 20];
static pthread_barrier_t up;

static void tell(const char *name, const void *address)
{
    printf("%s %lu\n", name, (unsigned long)address);
}

static void *rest(void *name)
{
    char here = 0;

    pthread_setname_np(pthread_self(), name);
    flockfile(stdout);
    tell(name, &here);
    funlockfile(stdout);
    pthread_barrier_wait(&up);
    for (;;)
        pause();
    return NULL;
}

static void *end(void *nothing)
{
    return nothing;
}

static void *map(int protection, int flags, int file)
{
    char *start = mmap(NULL, BYTES, protection, flags, file, 0);

    if (start == MAP_FAILED)
        abort();
    if (protection & PROT_WRITE)
        memset(start, 1, 100);
    return start;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int file = argc > 1 ? open(argv[1], O_RDONLY) : -1, memory = memfd_create("some memory", 0);

    if (file < 0 || memory < 0 || ftruncate(memory, BYTES))
        return 2;
    pthread_barrier_init(&up, NULL, 3);
    for (unsigned i = 0; i < 3; i++)
        if (pthread_create(&thread, NULL, end, NULL) || pthread_join(thread, NULL))
            return 3;
    for (unsigned i = 0; i < 2; i++)
        if (pthread_create(&thread, NULL, rest, i ? "second" : "first"))
            return 3;
    pthread_barrier_wait(&up);
    memset(zeroes, 1, sizeof zeroes);
    tell("stack", &thread);
    tell("zeroes", zeroes + sizeof zeroes / 2);
    tell("code", (void *)(unsigned long)map);
    tell("jit", map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1));
    tell("file", map(PROT_READ, MAP_PRIVATE, file));
    tell("memory", map(PROT_READ | PROT_WRITE, MAP_SHARED, memory));
    tell("shared", map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1));
    tell("reserved", map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
    puts("end");
    fflush(stdout);
    raise(SIGSTOP);
    return 0;
}
