/* common/thread.h - starts native threads that run no Ruby code. */
#pragma once

#include <pthread.h>
#include <signal.h>

/* Starts a thread with a stack of 256 KiB. It blocks the signals in `blocked`, or all of them where that is NULL: they are
 * for the program's threads. Where `thread` is NULL it is detached. Returns 0 or an errno. */
int culet_thread_start(pthread_t *thread, void *(*function)(void *), const sigset_t *blocked);
