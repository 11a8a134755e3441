/* growth.c - what malloc and free cost beside a live heap of `bytes`: replacement in a set of fixed size, and over the
 * whole heap, where the program's own cache and TLB misses grow too. So the latter is done once more without the
 * allocator: the same random visits, the same writes to the blocks. */
#define _GNU_SOURCE
#include "probe.h"

static struct parameter parameters[] = {
    {"bytes", 1024 * MIB, "live heap"},
    {"min", 64, "smallest block in bytes"},
    {"max", 1024, "largest block in bytes"},
    {"hot", 10000, "blocks of the fixed set"},
    {"operations", 2000000, "replacements of each kind"},
    {0},
};
enum { BYTES, MIN, MAX, HOT, OPERATIONS };

/* CPU nanoseconds per replacement in `block[0..count)`. */
static double replacements(void **block, size_t count, uint64_t seed)
{
    size_t min = parameters[MIN].value, max = parameters[MAX].value;
    double began = seconds(CLOCK_THREAD_CPUTIME_ID);

    for (uint64_t n = parameters[OPERATIONS].value; n; n--) {
        uint64_t some = next_random(&seed);
        void **slot = &block[index_below(some, count)];
        free(*slot);
        *slot = take(size_between(some, min, max));
    }
    return (seconds(CLOCK_THREAD_CPUTIME_ID) - began) * 1e9 / (double)parameters[OPERATIONS].value;
}

/* The same visits without malloc and free: two blocks are written and change places, the one at random (as the freed
 * one) and another (as the one taken), which both can lie anywhere. */
static double visits(void **block, size_t count, uint64_t seed)
{
    double began = seconds(CLOCK_THREAD_CPUTIME_ID);

    for (uint64_t n = parameters[OPERATIONS].value; n; n--) {
        uint64_t some = next_random(&seed);
        char **one = (char **)&block[index_below(some, count)];
        char **other = (char **)&block[index_below(some << 32, count)];
        char *kept = *one;
        kept[0] = (char)some;
        *one = *other;
        *other = kept;
        (*one)[parameters[MIN].value - 1] = (char)some;
    }
    return (seconds(CLOCK_THREAD_CPUTIME_ID) - began) * 1e9 / (double)parameters[OPERATIONS].value;
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    size_t min = at_most(parameters[MIN].value, parameters[MAX].value, "min"), max = parameters[MAX].value;
    size_t hot = at_most(parameters[HOT].value, UINT32_MAX, "hot"),
           room = (parameters[BYTES].value / min + 1) * sizeof(void *);
    void **block = own_memory(room), **set = own_memory(hot * sizeof *set);
    uint64_t random = 1;
    size_t count = 0, base = rss_bytes();
    at_most(parameters[OPERATIONS].value, 1ull << 40, "operations");

    double began = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t sum = 0; sum < parameters[BYTES].value; count++) {
        size_t bytes = size_between(next_random(&random), min, max);
        block[count] = take(bytes);
        memset(block[count], 1, bytes);
        sum += bytes;
    }
    figure("fill_nanoseconds_per_malloc", (seconds(CLOCK_PROCESS_CPUTIME_ID) - began) * 1e9 / (double)count);
    for (size_t i = 0; i < hot; i++)
        set[i] = take(size_between(next_random(&random), min, max));
    replacements(set, hot, 2); /* warm */
    figure("hot_nanoseconds_per_replacement", replacements(set, hot, 3));
    visits(block, count, 4);
    double plain = visits(block, count, 5);
    replacements(block, count, 6);
    double all = replacements(block, count, 7);
    figure("plain_nanoseconds_per_visit", plain);
    figure("all_nanoseconds_per_replacement", all);
    figure("all_over_plain", all / plain);
    figure_bytes("blocks", count);
    figure_memory(parameters[BYTES].value, base + count * sizeof(void *));
    print_figures("growth");
    _exit(0); /* the kernel ends this heap faster than free would */
}
