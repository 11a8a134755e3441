#include "trim/stack.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define MARGIN_BYTES ((uintptr_t)128 << 10)

void culet_trim_stack(void)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    pthread_attr_t attributes;
    void *start = NULL;
    size_t bytes = 0;

    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    (void)pthread_attr_getstack(&attributes, &start, &bytes);
    (void)pthread_attr_destroy(&attributes);

    uintptr_t end = (frame - MARGIN_BYTES) & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    if (frame - (uintptr_t)start < bytes && end > (uintptr_t)start)
        (void)madvise(start, end - (uintptr_t)start, MADV_DONTNEED);
}
