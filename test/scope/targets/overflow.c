/* Writes 16 bytes beyond the last block of its heap, into the size of the top chunk. Then it counts, one number per
 * line, and never allocates again. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    static char *blocks[2000];
    char line[32];

    for (int i = 0; i < 2000; i++)
        blocks[i] = malloc(5000);
    memset(blocks[1999], 'A', malloc_usable_size(blocks[1999]) + 16);
    for (unsigned long count = 0;; count++) {
        int length = snprintf(line, sizeof line, "%lu\n", count);
        if (write(STDOUT_FILENO, line, (size_t)length) != length)
            return 1;
        usleep(10000);
    }
}
