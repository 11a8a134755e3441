/* cow.c - memory that a forked child dirties by freeing one block in each 4 KiB page of the parent's blocks. */
#define _GNU_SOURCE
#include "probe.h"

static struct parameter parameters[] = {
    {"bytes", 64 * MIB, "bytes of blocks that the parent makes"},
    {"size", 256, "bytes of each block"},
    {0},
};
enum { BYTES, SIZE };

static int in_child(void **block, size_t count)
{
    uintptr_t last = 0;
    size_t before = private_dirty_bytes();

    for (size_t i = 0; i < count; i++)
        if ((uintptr_t)block[i] >> 12 != last) {
            last = (uintptr_t)block[i] >> 12;
            free(block[i]);
        }
    size_t after = private_dirty_bytes();
    figure_bytes("private_dirty_growth_bytes", after > before ? after - before : 0);
    return print_figures("cow");
}

int main(int argc, char **argv)
{
    read_parameters(argc, argv, parameters);
    size_t size = at_most(parameters[SIZE].value, 4096, "size"), count = parameters[BYTES].value / size;
    void **block = own_memory((count + 1) * sizeof *block);

    for (size_t i = 0; i < count; i++) {
        block[i] = take(size);
        memset(block[i], 1, size);
    }
    private_dirty_bytes(); /* touches the code and the stack of the reader before the fork */
    pid_t child = fork_child();
    if (child == 0)
        _exit(in_child(block, count));
    end_with(child);
}
