/* Has a mapping in which every page begins a chain of chunks, which breaks at the end of the mapping. */
#include "target.h"

#include <sys/mman.h>

#define BYTES ((size_t)64 << 20)

int main(void)
{
    static void *blocks[1000];
    uint64_t *words = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (words == MAP_FAILED)
        return 3;
    for (int i = 0; i < 1000; i++)
        blocks[i] = malloc(100);
    for (size_t i = 0; i < BYTES / sizeof *words; i += 4)
        words[i + 1] = 0x21;
    words[BYTES / sizeof *words - 3] = 0x1;
    print_and_stop();
    return blocks[0] == NULL;
}
