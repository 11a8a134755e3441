/* loader.h - whether the dynamic loader is at work, in which no thread may be started.
 *
 * While dlopen adds libraries with thread-local storage, a new thread's storage cannot be laid out: the loader has counted
 * the libraries already and does not have them in its table yet, and glibc ends the process ("listp != NULL"). Other
 * threads wait for the loader's lock; the loader's own thread, whose request for memory we serve, does not. */
#ifndef CULET_LOADER_H
#define CULET_LOADER_H

#include "types.h"

/* `caller`: the address to which the request that we serve returns. */
bool culet_loader_busy(const void *caller);

#endif
