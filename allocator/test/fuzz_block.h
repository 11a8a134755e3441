/* fuzz_block.h - a block in the fuzzer's model: address, requested size, contents.
 *
 * Without CULET_PREFIXED the names are libc's, served by the preloaded allocator. */
#pragma once

#include "check.h"
#include "culet.h"

#include <errno.h>

#define FUZZ(name) CULET_NAME(name)

#if !defined(__GLIBC__) && !defined(CULET_PREFIXED)
/* Of the preloaded library only. */
#pragma weak malloc_trim
#pragma weak malloc_info
#pragma weak mallinfo2
#pragma weak pvalloc
#endif

/* Printed with every failure, to repeat the run. */
static uint64_t fuzz_seed = 1;

/* CHECK, with the seed; the counter that CHECK moves is shared by all processes and too slow for each byte. */
#define AGREE(condition, format, ...)                                                                                  \
    do {                                                                                                               \
        if (__builtin_expect(!(condition), 0))                                                                         \
            check_fail(__FILE__, __LINE__, #condition, "--seed %lu: " format, (unsigned long)fuzz_seed, __VA_ARGS__);  \
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

/* A new block: as large and as aligned as requested. Records its usable size and fills it. */
static inline void block_enter(struct block *block, uint64_t tag)
{
    block->usable = FUZZ(malloc_usable_size)(block->start);
    AGREE((uintptr_t)block->start % block->alignment == 0, "%p is not aligned to %zu", (void *)block->start,
          block->alignment);
    AGREE(block->usable >= block->bytes, "%zu bytes are usable of %zu requested", block->usable, block->bytes);
    block_write(block, tag);
}

/* Before a change or a free: the block has its size and contents. */
static inline void block_check(const struct block *block)
{
    size_t usable = FUZZ(malloc_usable_size)(block->start);

    AGREE(usable == block->usable, "%zu usable bytes at %p became %zu", block->usable, (void *)block->start, usable);
    AGREE((uintptr_t)block->start % block->alignment == 0, "%p is not aligned to %zu", (void *)block->start,
          block->alignment);
    block_read(block, block->usable);
}
