/* growth.c - cost of malloc and free as the live heap grows from `from` bytes to `to`, four times larger each time:
 * replacement in a set of fixed size, and over the whole heap, where the program's own cache and TLB misses grow too.
 * Hence the same random visits and writes once more without malloc. */
#define _GNU_SOURCE
#include "probe.h"

static struct parameter parameters[] = {
    {"from", 64 * MIB, "bytes of the smallest live heap"},
    {"to", 1024 * MIB, "bytes of the largest"},
    {"min", 64, "smallest block in bytes"},
    {"max", 1024, "largest block in bytes"},
    {"hot", 10000, "blocks of the fixed set"},
    {"operations", 2000000, "replacements of each kind"},
    {0},
};
enum { FROM, TO, MIN, MAX, HOT, OPERATIONS };

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

/* Visits of blocks as in `replacements`, without malloc and free: two blocks are written and change places, the one at
 * random (as the freed one) and another (as the one taken), which both can lie anywhere. */
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

/* For a heap of one size, in CPU nanoseconds. */
struct step {
    double fill, hot, all, plain;
};

static struct step measure(void **block, size_t count, void **set)
{
    struct step step = {0};
    size_t hot = parameters[HOT].value;

    replacements(set, hot, 2); /* warm */
    step.hot = replacements(set, hot, 3);
    visits(block, count, 4);
    step.plain = visits(block, count, 5);
    replacements(block, count, 6);
    step.all = replacements(block, count, 7);
    return step;
}

static void show(const struct step *first, const struct step *last)
{
    figure("hot_nanoseconds_at_last", last->hot);
    figure("hot_growth", last->hot / first->hot);
    figure("all_nanoseconds_at_last", last->all);
    figure("all_growth", last->all / first->all);
    figure("plain_growth", last->plain / first->plain);
    figure("fill_growth", last->fill / first->fill);
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    size_t min = at_most(parameters[MIN].value, parameters[MAX].value, "min"), max = parameters[MAX].value;
    size_t hot = at_most(parameters[HOT].value, UINT32_MAX, "hot"), to = parameters[TO].value;
    size_t room = (to / ((min + max) / 2) * 2 + 100000) * sizeof(void *);
    void **block = own_memory(room), **set = own_memory(hot * sizeof *set);
    struct step first = {0}, last = {0};
    uint64_t random = 1;
    size_t from = at_most(parameters[FROM].value, to, "from"), count = 0, sum = 0;
    at_most(parameters[OPERATIONS].value, 1ull << 40, "operations");

    for (size_t i = 0; i < hot; i++)
        set[i] = take(size_between(next_random(&random), min, max));
    for (size_t step = from; step <= to; step *= 4) {
        size_t before = count;
        double began = seconds(CLOCK_PROCESS_CPUTIME_ID);
        for (; sum < step && count < room / sizeof *block; count++) {
            size_t bytes = size_between(next_random(&random), min, max);
            block[count] = take(bytes);
            memset(block[count], 1, bytes);
            sum += bytes;
        }
        double fill = (seconds(CLOCK_PROCESS_CPUTIME_ID) - began) * 1e9 / (double)(count - before);
        last = measure(block, count, set);
        last.fill = fill;
        if (step == from)
            first = last;
    }
    show(&first, &last);
    print_figures("growth");
    _exit(0); /* faster than to free all blocks */
}
