/* classes.c - rounding to size classes, by malloc_usable_size.
 *
 * Waste of a block is (usable - asked) / usable, the unrequested part; excess is (usable -
 * asked) / asked. Of glibc's chunk the 8 bytes of header are no part of the usable size and so are not counted. */
#define _GNU_SOURCE
#include "probe.h"

#include <malloc.h>

static struct parameter parameters[] = {
    {"from", 17, "smallest request in bytes"},
    {"mean", 1024, "largest request that the mean is taken over"},
    {"to", 32768, "largest request that the maximum is taken over"},
    {"big", 4 * MIB, "requests from here on are to be rounded to pages only"},
    {0},
};
enum { FROM, MEAN, TO, BIG };

#define TRIES 8

/* Some allocators serve a first request from what an earlier one left over; the least of a few is the class. */
static size_t usable(size_t bytes)
{
    void *block[TRIES];
    size_t least = SIZE_MAX;

    for (int i = 0; i < TRIES; i++) {
        block[i] = take(bytes);
        size_t one = malloc_usable_size(block[i]);
        if (one < bytes)
            give_up("malloc_usable_size returns %zu for a block of %zu", one, bytes);
        if (one < least)
            least = one;
    }
    for (int i = 0; i < TRIES; i++)
        free(block[i]);
    return least;
}

/* The largest excess in bytes of a few sizes from `from` to 16 times that. */
static size_t big_excess(size_t from)
{
    size_t most = 0;

    for (size_t bytes = from + 1; bytes < 16 * from; bytes += bytes / 7 + 4097) {
        void *block = take(bytes);
        size_t excess = malloc_usable_size(block) - bytes;
        if (excess > most)
            most = excess;
        free(block);
    }
    return most;
}

int main(int argc, char **argv)
{
    double mean_waste = 0, most_waste = 0, most_excess = 0;

    read_parameters(argc, argv, parameters);
    size_t from = at_most(parameters[FROM].value, parameters[MEAN].value, "from");
    for (size_t bytes = from; bytes <= parameters[TO].value; bytes++) {
        double size = (double)usable(bytes), over = size - (double)bytes;
        if (bytes <= parameters[MEAN].value)
            mean_waste += over / size / (double)(parameters[MEAN].value - from + 1);
        if (bytes >= 128 && over / size > most_waste) /* below, the 16 bytes of alignment decide */
            most_waste = over / size;
        if (bytes >= 128 && over / (double)bytes > most_excess)
            most_excess = over / (double)bytes;
    }
    figure("mean_waste", mean_waste);
    figure("largest_waste", most_waste);
    figure("largest_excess", most_excess);
    figure_bytes("big_excess_bytes", big_excess(parameters[BIG].value));
    return print_figures("classes");
}
