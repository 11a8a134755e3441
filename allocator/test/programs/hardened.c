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

static void underflow(void)
{
    request(40);
    block[-1] = 0;
    free(block);
}

/* No free of the block follows, but another request. */
static void overflow_seen_by_a_request(void)
{
    request(40);
    block[40] = 0;
    malloc(500);
}

/* 31 bytes behind it: in padding that no canary of level 2 has. */
static void overflow_seen_at_exit(void)
{
    request(4096);
    block[4096 + 31] ^= 1;
}

static void write_after_free_seen_at_exit(void)
{
    request(5000);
    free(block);
    block[4000] = 1;
}

static void free_of_the_canaries(void)
{
    request(40);
    printf("canaries=%p\n", (void *)(block - 32));
    fflush(stdout);
    free(block - 32);
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
    {"overflow", "free of {address}: overflow: the bytes behind the block (size class 112) have been overwritten",
     overflow},
    {"overflow_of_realloc",
     "realloc of {address}: overflow: the bytes behind the block (size class 112) have been overwritten",
     overflow_of_realloc},
    {"double_free", "double free of {address}: the 80-byte block {address} (size class 112) is already free",
     double_free},
    {"realloc_of_freed", "realloc of {address}: the 80-byte block {address} (size class 112) is already free",
     realloc_of_freed},
    {"write_after_free",
     "write after free of {address}: the 80-byte block {address} (size class 112) was written to while it was free",
     write_after_free},
    {"underflow", "free of {address}: underflow: the bytes before the block (size class 112) have been overwritten",
     underflow},
    {"overflow_seen_by_a_request",
     "check of {address}: overflow: the bytes behind the block (size class 112) have been overwritten",
     overflow_seen_by_a_request},
    {"overflow_seen_at_exit",
     "check of {address}: overflow: the bytes behind the block (size class 4224) have been overwritten",
     overflow_seen_at_exit},
    {"write_after_free_seen_at_exit",
     "write after free of {address}: the 5216-byte block {address} (size class 5248) was written to while it was free",
     write_after_free_seen_at_exit},
    {"free_of_the_canaries",
     "free of {canaries}: it points 32 bytes before the 80-byte block {address} (size class 112)",
     free_of_the_canaries},
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
