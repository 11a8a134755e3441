/* early_library.c - a library that allocates in its constructor and destructor. Preloaded before culet and behind
 * it. */
#include <stdlib.h>
#include <string.h>

#define BLOCKS 300

static unsigned char *block[BLOCKS];

int early_library_intact(void);

static void allocate(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(i * 37 + 1);
        if (!block[i])
            abort();
        memset(block[i], (int)i % 256, i * 37 + 1);
    }
}

/* Whether the constructor's blocks are as it left them; frees half of them and allocates others. */
int early_library_intact(void)
{
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t k = 0; k < i * 37 + 1; k++)
            if (block[i][k] != i % 256)
                return 0;
    for (size_t i = 0; i < BLOCKS; i += 2) {
        block[i] = realloc(block[i], i * 50 + 100);
        if (!block[i])
            return 0;
        memset(block[i], (int)i % 256, i * 50 + 100);
    }
    return 1;
}

__attribute__((constructor)) static void loaded(void)
{
    allocate();
}

__attribute__((destructor)) static void unloaded(void)
{
    for (size_t i = 0; i < BLOCKS; i++)
        free(block[i]);
    allocate();
}
