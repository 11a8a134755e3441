#include "probes.h"

#if CULET_PROBES
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

unsigned short otel_memory_alloc_semaphore __attribute__((section(".probes")));
unsigned short otel_memory_free_semaphore __attribute__((section(".probes")));

/* The probe is all that is in the function, so the arguments are where the caller has put them. */
__attribute__((noinline)) void culet_probes_alloc(const void *block, uint64_t size, uint64_t weighted_bytes)
{
    STAP_PROBE3(otel_memory, alloc, block, size, weighted_bytes);
}

__attribute__((noinline)) void culet_probes_free(const void *block)
{
    STAP_PROBE1(otel_memory, free, block);
}
#endif
