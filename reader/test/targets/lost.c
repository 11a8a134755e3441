/* Overwrites the main arena's bins, so that it cannot be recognized, and stops. */
#include "target.h"

#define BINS 60 /* of 127 pairs of pointers */

int main(void)
{
    /* What was freed last is in the unsorted bin, which is the first; its links lead there. */
    size_t *block = malloc(5000);
    char *kept = malloc(100);

    memset(block, 1, 5000);
    free(block);
    size_t *bin = (size_t *)block[0] + 2;
    print_and_stop();
    for (int i = 2; i < 2 * BINS; i++)
        bin[i] = (size_t)kept;
    raise(SIGSTOP);
    return 0;
}
