/* usage: threads COUNT
 *
 * Has so many waiting threads. Prints a line when all wait. */
#include "../../../reader/test/targets/waiting_threads.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (start_waiting_threads((unsigned)atoi(argc > 1 ? argv[1] : "1"), 0))
        return 1;
    puts("end");
    fflush(stdout);
    for (;;)
        pause();
}
