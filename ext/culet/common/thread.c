#include "common/thread.h"

#include <stddef.h>

#define STACK_BYTES ((size_t)256 << 10)

int culet_thread_start(pthread_t *thread, void *(*function)(void *), const sigset_t *blocked)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t detached;
    int error;

    pthread_attr_init(&attributes); /* cannot fail in glibc */
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (thread == NULL)
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, blocked != NULL ? blocked : &all, &before);
    error = pthread_create(thread != NULL ? thread : &detached, &attributes, function, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}
