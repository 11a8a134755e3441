/* fuzz_block.h - a block as the fuzzer's model knows it: where it is, what was asked for, what is written in it.
 *
 * Without CULET_PREFIXED the names are libc's own, and whichever allocator is preloaded serves them. */
#ifndef FUZZ_BLOCK_H
#define FUZZ_BLOCK_H

#include "check.h"
#include "culet.h"

#include <errno.h>

#define FUZZ(name) CULET_NAME(name)

/* Repeated in every failure, so that it can be tried again. */
static uint64_t fuzz_seed = 1;

/* CHECK, with the seed; the counter that CHECK moves is shared by all processes and too slow for each byte. */
#define AGREE(condition, format, ...)                                                                           \
    do {                                                                                                        \
        if (__builtin_expect(!(condition), 0))                                                                  \
            check_fail(__FILE__, __LINE__, #condition, "--seed %lu: " format, (unsigned long)fuzz_seed, __VA_ARGS__); \
    } while (0)

struct block {
    unsigned char *start;
    size_t bytes;     /* asked for */
    size_t usable;    /* all of it is written */
    size_t alignment; /* asked for */
    uint64_t tag;     /* gives the contents */
};

/* The word at index i: differs from its neighbours, and from the same word of other blocks. */
static inline uint64_t block_word(uint64_t tag, size_t i)
{
    return tag + i * UINT64_C(0x9e3779b97f4a7c15);
}

/* Writes all usable bytes. */
static inline void block_write(struct block *block, uint64_t tag)
{
    size_t words = block->usable / sizeof tag, rest = block->usable % sizeof tag;
    uint64_t word = 0;

    block->tag = tag;
    for (size_t i = 0; i < words; i++)
        ((uint64_t *)block->start)[i] = block_word(tag, i);
    word = block_word(tag, words);
    memcpy(block->start + words * sizeof word, &word, rest);
}

/* Fails unless the first `bytes` bytes are as they were written. */
static inline void block_read(const struct block *block, size_t bytes)
{
    size_t words = bytes / sizeof block->tag, rest = bytes % sizeof block->tag;
    uint64_t word;

    for (size_t i = 0; i < words; i++)
        AGREE(((const uint64_t *)block->start)[i] == block_word(block->tag, i),
              "word %zu of the block %p of %zu bytes was changed", i, (void *)block->start, block->bytes);
    word = block_word(block->tag, words);
    AGREE(memcmp(block->start + words * sizeof word, &word, rest) == 0,
          "the last bytes of the first %zu of the block %p of %zu bytes were changed", bytes, (void *)block->start,
          block->bytes);
}

/* A block fresh from the allocator: as large and as aligned as asked for. Fills in what can be used, and writes it. */
static inline void block_enter(struct block *block, uint64_t tag)
{
    block->usable = FUZZ(malloc_usable_size)(block->start);
    AGREE((uintptr_t)block->start % block->alignment == 0, "%p is not aligned to %zu", (void *)block->start,
          block->alignment);
    AGREE(block->usable >= block->bytes, "%zu bytes are usable of %zu asked for", block->usable, block->bytes);
    block_write(block, tag);
}

/* A block before it is changed or freed: nobody else has written to it, and it is as large as before. */
static inline void block_check(const struct block *block)
{
    size_t usable = FUZZ(malloc_usable_size)(block->start);

    AGREE(usable == block->usable, "%zu usable bytes at %p became %zu", block->usable, (void *)block->start, usable);
    AGREE((uintptr_t)block->start % block->alignment == 0, "%p is not aligned to %zu", (void *)block->start,
          block->alignment);
    block_read(block, block->usable);
}

#endif
