/* api.c - malloc's family, recorded and passed on. */
#define _GNU_SOURCE
#include "next.h"
#include "writer.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Of C23; not every libc declares them. */
EXPORT void free_sized(void *block, size_t bytes);
EXPORT void free_aligned_sized(void *block, size_t alignment, size_t bytes);

static void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

static void record_got(unsigned event, size_t bytes, const void *block)
{
    struct culet_writer *writer = block ? culet_writer_begin() : NULL;
    if (!writer)
        return;

    unsigned small = culet_small_bits(bytes);
    uint8_t *at = culet_put_event(writer, culet_writer_at(writer), event | small, culet_next_sequence());
    at = culet_put_bytes(at, small, bytes);
    at = culet_put_address(at, &writer->got, block);
    culet_writer_end(writer, at);
}

static void record_aligned(size_t alignment, size_t bytes, const void *block)
{
    struct culet_writer *writer = block ? culet_writer_begin() : NULL;
    if (!writer)
        return;

    uint8_t *at = culet_put_event(writer, culet_writer_at(writer), CULET_EVENT_ALIGNED, culet_next_sequence());
    at = culet_put(at, (uint64_t)__builtin_ctzl(alignment));
    at = culet_put(at, bytes);
    at = culet_put_address(at, &writer->got, block);
    culet_writer_end(writer, at);
}

static void record_gone(const void *block)
{
    struct culet_writer *writer = culet_writer_begin();
    if (!writer)
        return;

    uint8_t *at = culet_put_event(writer, culet_writer_at(writer), CULET_EVENT_FREE, culet_next_sequence());
    at = culet_put_address(at, &writer->gone, block);
    culet_writer_end(writer, at);
}

/* `before` is the number taken before the call; `got` may be NULL. */
static void record_moved(const void *block, size_t bytes, const void *got, uint64_t before)
{
    struct culet_writer *writer = culet_writer_begin();
    if (!writer)
        return;

    if (!got && bytes)
        bytes = 1; /* it failed: what it asked for may be beyond any size, and no longer matters */

    uint64_t wait = culet_next_sequence() - before - 1;
    unsigned small = culet_small_bits(bytes);
    uint8_t *at = culet_put_event(writer, culet_writer_at(writer), CULET_EVENT_REALLOC | small, before);
    at = culet_put_address(at, &writer->gone, block);
    at = culet_put_bytes(at, small, bytes);
    if (got)
        at = culet_put_address(at, &writer->got, got);
    else
        at = culet_put(at, culet_zigzag(0 - writer->got)); /* the address 0, not to be remembered as the last */
    at = culet_put(at, wait);
    writer->expected += wait + 1;
    culet_writer_end(writer, at);
}

/* ---- the standard's functions ---- */

EXPORT void *malloc(size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, 1);

    void *block = culet_next.malloc(bytes);
    record_got(CULET_EVENT_MALLOC, bytes, block);
    return block;
}

static bool early(const void *block)
{
    const char *end;

    return culet_early_owns(block, &end);
}

/* Whether a block is one that can be given up; records it. */
static bool give_up(const void *block)
{
    if (!block || __builtin_expect(early(block), 0) || __builtin_expect(!culet_next_ready(), 0))
        return false;
    record_gone(block);
    return true;
}

EXPORT void free(void *block)
{
    if (give_up(block))
        culet_next.free(block);
}

EXPORT void free_sized(void *block, size_t bytes)
{
    if (!give_up(block))
        return;
    if (culet_next.free_sized)
        culet_next.free_sized(block, bytes);
    else
        culet_next.free(block);
}

EXPORT void free_aligned_sized(void *block, size_t alignment, size_t bytes)
{
    if (!give_up(block))
        return;
    if (culet_next.free_aligned_sized)
        culet_next.free_aligned_sized(block, alignment, bytes);
    else
        culet_next.free(block);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count, bytes, &total))
        return out_of_memory();
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(total, 1);

    void *block = culet_next.calloc(count, bytes);
    record_got(CULET_EVENT_CALLOC, total, block);
    return block;
}

/* An early block's size is not known: what could be of it is copied. */
static void *leave_early(const void *block, size_t bytes)
{
    const char *end;
    void *got = malloc(bytes);

    culet_early_owns(block, &end);
    if (got) {
        size_t there = (size_t)(end - (const char *)block);
        memcpy(got, block, bytes < there ? bytes : there);
    }
    return got;
}

EXPORT void *realloc(void *block, size_t bytes)
{
    if (!block)
        return malloc(bytes);
    if (__builtin_expect(early(block) || !culet_next_ready(), 0))
        return leave_early(block, bytes);

    uint64_t before = culet_next_sequence();
    void *got = culet_next.realloc(block, bytes);
    int saved = errno;
    record_moved(block, bytes, got, before);
    errno = saved;
    return got;
}

EXPORT void *reallocarray(void *block, size_t count, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count, bytes, &total))
        return out_of_memory();
    return realloc(block, total);
}

/* ---- aligned ---- */

/* As much as a block from the function has, whatever was asked for. */
static size_t power_above(size_t alignment)
{
    return alignment <= 1 ? 1 : (size_t)1 << (sizeof(long) * CHAR_BIT - (unsigned)__builtin_clzl(alignment - 1));
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, alignment);

    void *block = culet_next.memalign(alignment, bytes);
    record_aligned(power_above(alignment), bytes, block);
    return block;
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, alignment);

    void *block = culet_next.aligned_alloc(alignment, bytes);
    record_aligned(power_above(alignment), bytes, block);
    return block;
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0)) {
        *block = culet_early_malloc(bytes, alignment);
        return *block ? 0 : ENOMEM;
    }

    int error = culet_next.posix_memalign(block, alignment, bytes);
    if (!error)
        record_aligned(power_above(alignment), bytes, *block);
    return error;
}

EXPORT void *valloc(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, page);

    void *block = culet_next.valloc(bytes);
    record_aligned(page, bytes, block);
    return block;
}

EXPORT void *pvalloc(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, page);

    void *block = culet_next.pvalloc(bytes);
    record_aligned(page, bytes ? (bytes + page - 1) & ~(page - 1) : page, block);
    return block;
}
