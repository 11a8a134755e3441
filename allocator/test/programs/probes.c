/* probes.c - requests of known bytes for a debugger at the probes of the allocator (probes.sh): before it attaches, while
 * it is attached, and after it has left. */
#include "programs.h"

#define BLOCKS 4000

void probes_attach(void);
void probes_leave(void);

/* Where the debugger stops. */
__attribute__((noinline)) void probes_attach(void)
{
    __asm__ volatile("");
}

__attribute__((noinline)) void probes_leave(void)
{
    __asm__ volatile("");
}

static void *kept[BLOCKS];

/* Usable bytes of all blocks. */
static uint64_t work(void)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < BLOCKS; i++) {
        kept[i] = i % 8 ? malloc(1000 * (i % 8)) : calloc(1, 40000 + i * 100);
        bytes += malloc_usable_size(kept[i]);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        free(kept[i]);
    return bytes;
}

int main(void)
{
    if (!on_culet())
        return 1;
    setvbuf(stdout, NULL, _IONBF, 0); /* a buffer would be a request of its own, and never freed */
    work();
    probes_attach();
    free(malloc(2 << 20)); /* noticed by the slow path */
    printf("bytes %lu\n", (unsigned long)work());
    fflush(stdout);
    probes_leave();
    work();
    return 0;
}
