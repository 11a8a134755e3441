/* tls.c - a shared library with thread-local variables; built in several sizes and access models. */
#include <stdlib.h>
#include <string.h>

#ifndef TLS_BYTES
#define TLS_BYTES 100
#endif

static _Thread_local char zeros[TLS_BYTES];
static _Thread_local char data[TLS_BYTES] = "thread-local";
static char *kept;

int tls_touch(int with);

/* Whether this thread's variables have their initial values; fills them. */
int tls_touch(int with)
{
    int fresh = zeros[0] == 0 && zeros[TLS_BYTES - 1] == 0 && strcmp(data, "thread-local") == 0;

    memset(zeros, with, sizeof zeros);
    memset(data, with, sizeof data);
    return fresh;
}

__attribute__((constructor)) static void loaded(void)
{
    kept = malloc(TLS_BYTES);
    if (!kept)
        abort();
    memset(kept, 1, TLS_BYTES);
}

__attribute__((destructor)) static void unloaded(void)
{
    free(kept);
}
