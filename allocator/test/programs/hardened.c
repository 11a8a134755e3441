/* hardened.c - mistakes that a hardened process (CULET_HARDEN=3) must end with a diagnostic and SIGABRT. As misuse.c:
 * `hardened NAME` makes one of them, `hardened` lists all with the expected diagnostic. Built with -O0. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void free_sized(void *block, size_t bytes) __attribute__((weak));

static char *block;

static void request(size_t bytes)
{
    block = malloc(bytes);
    printf("address=%p\n", (void *)block);
    fflush(stdout);
}

static void overflow(void)
{
    request(41);
    block[41] ^= 1;
    free(block);
}

static void overflow_of_realloc(void)
{
    request(41);
    block[41] ^= 1;
    block = realloc(block, 500);
}

static void double_free(void)
{
    request(40);
    free(block);
    free(block);
}

static void realloc_of_freed(void)
{
    request(40);
    free(block);
    block = realloc(block, 50);
}

static void write_after_free(void)
{
    request(40);
    free(block);
    block[8] = 1;
    for (int i = 0; i < 5000000; i++)
        free(malloc(40));
}

static void wrong_size(void)
{
    request(40);
    free_sized(block, 39);
}

static const struct misuse {
    const char *name, *expected;
    void (*make)(void);
} misuses[] = {
    {"overflow", "free of {address}: overflow: the bytes behind the block (size class 80) have been overwritten",
     overflow},
    {"overflow_of_realloc",
     "realloc of {address}: overflow: the bytes behind the block (size class 80) have been overwritten",
     overflow_of_realloc},
    {"double_free", "double free of {address}: the 80-byte block {address} (size class 80) is already free",
     double_free},
    {"realloc_of_freed", "realloc of {address}: the 80-byte block {address} (size class 80) is already free",
     realloc_of_freed},
    {"write_after_free",
     "write after free of {address}: the 80-byte block {address} (size class 80) was written to while it was free",
     write_after_free},
    {"wrong_size", "free_sized of {address}: called with a size of 39 for a block of 40", wrong_size},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof misuses / sizeof misuses[0]; i++) {
        if (argc < 2)
            printf("%s\t134\tculet: %s\n", misuses[i].name, misuses[i].expected);
        else if (strcmp(argv[1], misuses[i].name) == 0)
            misuses[i].make();
    }
    return 0;
}
