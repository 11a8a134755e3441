/* loader.h - whether the dynamic loader is active: then no thread may be started.
 *
 * While dlopen adds libraries with thread-local storage, it has counted them already but does not have them in its
 * table yet. glibc cannot lay out a new thread's storage then and ends the process ("listp != NULL"). Other threads
 * wait for the loader's lock; the loader's own thread, whose request for memory we serve, does not. */
#pragma once

#include "types.h"

/* `caller`: the return address of the request that is being served. */
bool culet_loader_busy(const void *caller);
