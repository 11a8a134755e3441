/* Has chunks of hundreds of megabytes in the heap by brk, with a few pages of each in memory, and stops. */
#include "target.h"

#include <malloc.h>

#define MEGABYTE ((size_t)1 << 20)

static void *vast(size_t megabytes, size_t touched)
{
    char *block = malloc(megabytes * MEGABYTE);

    if (!block)
        exit(4);
    for (size_t at = 0; at < touched * MEGABYTE; at += 4096)
        block[megabytes / 2 * MEGABYTE + at] = 1;
    return block;
}

int main(void)
{
    static void *volatile kept[6];

    /* One block may have a mapping of its own, and has one. */
    mallopt(M_MMAP_MAX, 1);
    mallopt(M_TRIM_THRESHOLD, -1);
    kept[0] = malloc(10 * MEGABYTE);
    kept[1] = vast(700, 3);
    kept[2] = malloc(100);
    kept[3] = vast(650, 4);
    kept[4] = malloc(100);
    kept[5] = vast(800, 5);
    free(kept[3]);
    free(kept[5]);
    print_and_stop();
    return 0;
}
