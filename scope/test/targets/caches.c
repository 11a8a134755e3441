/* Stops, frees blocks into the tcache and the arena's fastbins, and stops again. Its second line has the bytes in the
 * tcache: "cached N". */
#include "target.h"

#define KEPT 7 /* of a size, by a thread: glibc's default up to 2.42 */

int main(void)
{
    void *large[KEPT], *odd[3], *small[40];
    char line[64];

    for (int i = 0; i < KEPT; i++)
        large[i] = malloc(500);
    for (int i = 0; i < 3; i++)
        odd[i] = malloc(1000);
    for (int i = 0; i < 40; i++)
        small[i] = malloc(100);
    print_and_stop();
    for (int i = 0; i < KEPT; i++)
        free(large[i]);
    for (int i = 0; i < 3; i++)
        free(odd[i]);
    /* Every other one, so that those behind the first KEPT are not merged: they go into a fastbin. */
    for (int i = 0; i < 40; i += 2)
        free(small[i]);
    snprintf(line, sizeof line, "cached %d\n", KEPT * 512 + 3 * 1008 + KEPT * 112);
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        return 3;
    print_and_stop();
    return 0;
}
