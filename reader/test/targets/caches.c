/* usage: caches [BYTES ...]
 *
 * Stops, frees blocks into the tcache and the arena's fastbins, and stops again. Its second line has the bytes in the
 * tcache: "cached N". With BYTES, for a tcache of large blocks (glibc.malloc.tcache_max): frees LARGE blocks of each size
 * alone, and N leaves out those with a mapping of their own. */
#include "target.h"

#define KEPT 7 /* of a size, by a thread: glibc's default up to 2.42 */
#define LARGE 3
#define MOST_SIZES 16

static size_t free_large(void **blocks, int count)
{
    size_t bytes = 0;

    for (int i = 0; i < count; i++) {
        size_t size = ((size_t *)blocks[i])[-1]; /* of the chunk, and its flags */
        bytes += size & 2 ? 0 : size & ~(size_t)7;
        free(blocks[i]);
    }
    return bytes;
}

static size_t free_small(void **large, void **odd, void **small)
{
    for (int i = 0; i < KEPT; i++)
        free(large[i]);
    for (int i = 0; i < 3; i++)
        free(odd[i]);
    /* Every other one, so that those behind the first KEPT are not merged: they go into a fastbin. */
    for (int i = 0; i < 40; i += 2)
        free(small[i]);
    return KEPT * 512 + 3 * 1008 + KEPT * 112;
}

int main(int argc, char **argv)
{
    void *large[KEPT], *odd[3], *small[40], *given[MOST_SIZES * LARGE];
    int sizes = argc - 1 < MOST_SIZES ? argc - 1 : MOST_SIZES;
    char line[64];

    for (int i = 0; i < KEPT; i++)
        large[i] = malloc(500);
    for (int i = 0; i < 3; i++)
        odd[i] = malloc(1000);
    for (int i = 0; i < 40; i++)
        small[i] = malloc(100);
    for (int i = 0; i < sizes * LARGE; i++) {
        given[i] = malloc(strtoull(argv[1 + i / LARGE], NULL, 10));
        memset(given[i], 1, 64);
    }
    print_and_stop();
    snprintf(line, sizeof line, "cached %zu\n",
             sizes ? free_large(given, sizes * LARGE) : free_small(large, odd, small));
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        return 3;
    print_and_stop();
    return 0;
}
