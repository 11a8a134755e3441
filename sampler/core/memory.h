/* memory.h - memory of the profile: mappings, since malloc may be what is being sampled. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

/* Zeroed memory, resident where it is used; NULL if there is none. errno stays as it is. */
static inline void *culet_profile_map(size_t bytes)
{
    int error = errno;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    errno = error;
    return memory == MAP_FAILED ? NULL : memory;
}

static inline void culet_profile_unmap(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}
