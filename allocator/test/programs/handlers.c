/* handlers.c - a shared library with fork handlers that allocate and take the library's lock, as libraries have to be
 * consistent in a forked child. Preloaded behind culet its constructor runs first, so its handlers are registered
 * first. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int handlers_prepared, handlers_in_parent, handlers_in_child;
pthread_mutex_t handlers_lock = PTHREAD_MUTEX_INITIALIZER;
static void *held[3][40];

void handlers_work(int which);

/* Frees what the previous call has left, and allocates anew. */
void handlers_work(int which)
{
    for (int i = 0; i < 40; i++) {
        size_t bytes = (size_t)(i * i * i * 3 + 1); /* up to 178 KB */
        free(held[which][i]);
        if (!(held[which][i] = malloc(bytes)))
            abort();
        memset(held[which][i], which, bytes);
        if (i % 3 == 0 && !(held[which][i] = realloc(held[which][i], bytes * 2)))
            abort();
    }
}

static void prepare(void)
{
    pthread_mutex_lock(&handlers_lock);
    handlers_work(0);
    handlers_prepared++;
}

static void in_parent(void)
{
    handlers_work(1);
    handlers_in_parent++;
    pthread_mutex_unlock(&handlers_lock);
}

static void in_child(void)
{
    handlers_work(2);
    handlers_in_child++;
    pthread_mutex_unlock(&handlers_lock);
}

__attribute__((constructor)) static void loaded(void)
{
    if (pthread_atfork(prepare, in_parent, in_child) != 0)
        abort();
}
