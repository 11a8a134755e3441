#define _GNU_SOURCE
#include "thread.h"

#include <pthread.h>
#include <signal.h>

#define STACK_BYTES ((size_t)256 << 10)

bool culet_thread_start(void *(*function)(void *))
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;

    if (pthread_attr_init(&attributes) != 0)
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool done = pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 &&
                pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                pthread_create(&thread, &attributes, function, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return done;
}
