/* usage: threads COUNT
 *
 * Has so many waiting threads, each with a block of its own. Prints malloc's figures and stops. */
#include "target.h"
#include "waiting_threads.h"

int main(int argc, char **argv)
{
    if (start_waiting_threads((unsigned)atoi(argc > 1 ? argv[1] : "1"), 1000))
        return 10;
    print_and_stop();
    return 0;
}
