/* tls.h - the storage class of thread-local variables.
 *
 * Where samples are taken inside malloc, reaching a variable must not allocate: the initial-exec model does not, and the
 * libraries are there from the program's start. glibc has room for such variables of libraries that are loaded later;
 * musl refuses to load them, and never allocates at the first access. */
#pragma once

#include <limits.h> /* __GLIBC__ */

#if defined(__GLIBC__) || defined(CULET_PROFILE_SAMPLES_MALLOC)
#define CULET_TLS _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define CULET_TLS _Thread_local
#endif
