/* api.c - the malloc functions: each calls the next allocator and records the result. */
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

/* C23; older versions of libc do not declare them. */
EXPORT void free_sized(void *block, size_t bytes);
EXPORT void free_aligned_sized(void *block, size_t alignment, size_t bytes);

static void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

static void record_allocation(unsigned event, size_t bytes, const void *block)
{
    struct culet_writer *writer = block ? culet_writer_begin() : NULL;
    if (!writer)
        return;

    unsigned small = culet_encode_small(bytes);
    uint8_t *at = culet_put_event(writer, culet_writer_at(writer), event | small, culet_next_sequence());
    at = culet_put_size(at, small, bytes);
    at = culet_put_address(at, &writer->allocated, block);
    culet_writer_end(writer, at);
}

static void record_aligned(size_t alignment, size_t bytes, const void *block)
{
    struct culet_writer *writer = block ? culet_writer_begin() : NULL;
    if (!writer)
        return;

    uint8_t *at = culet_put_event(writer, culet_writer_at(writer), CULET_EVENT_ALIGNED, culet_next_sequence());
    at = culet_encode_number(at, (uint64_t)__builtin_ctzl(alignment));
    at = culet_encode_number(at, bytes);
    at = culet_put_address(at, &writer->allocated, block);
    culet_writer_end(writer, at);
}

static void record_free(const void *block)
{
    struct culet_writer *writer = culet_writer_begin();
    if (!writer)
        return;

    uint8_t *at = culet_put_event(writer, culet_writer_at(writer), CULET_EVENT_FREE, culet_next_sequence());
    at = culet_put_address(at, &writer->freed, block);
    culet_writer_end(writer, at);
}

/* `before`: the sequence number taken before the call. `allocated` may be NULL. */
static void record_realloc(const void *block, size_t bytes, const void *allocated, uint64_t before)
{
    struct culet_writer *writer = culet_writer_begin();
    if (!writer)
        return;

    if (!allocated && bytes)
        bytes = 1; /* it failed: the requested size may exceed CULET_EVENT_SIZE_BITS, and no longer matters */

    uint64_t wait = culet_next_sequence() - before - 1;
    unsigned small = culet_encode_small(bytes);
    uint8_t *at = culet_put_event(writer, culet_writer_at(writer), CULET_EVENT_REALLOC | small, before);
    at = culet_put_address(at, &writer->freed, block);
    at = culet_put_size(at, small, bytes);
    if (allocated)
        at = culet_put_address(at, &writer->allocated, allocated);
    else
        at = culet_encode_number(
            at, culet_encode_difference(0 - writer->allocated)); /* address 0; not stored as the previous address */
    at = culet_encode_number(at, wait);
    writer->expected += wait + 1;
    culet_writer_end(writer, at);
}

/* ---- standard C ---- */

EXPORT void *malloc(size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, 1);

    void *block = culet_next.malloc(bytes);
    record_allocation(CULET_EVENT_MALLOC, bytes, block);
    return block;
}

static bool is_early(const void *block)
{
    const char *end;

    return culet_early_owns(block, &end);
}

/* Records the free; false where the next allocator must not free the block. */
static bool begin_free(const void *block)
{
    if (!block || __builtin_expect(is_early(block), 0) || __builtin_expect(!culet_next_ready(), 0))
        return false;
    record_free(block);
    return true;
}

EXPORT void free(void *block)
{
    if (begin_free(block))
        culet_next.free(block);
}

EXPORT void free_sized(void *block, size_t bytes)
{
    if (!begin_free(block))
        return;
    if (culet_next.free_sized)
        culet_next.free_sized(block, bytes);
    else
        culet_next.free(block);
}

EXPORT void free_aligned_sized(void *block, size_t alignment, size_t bytes)
{
    if (!begin_free(block))
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
    record_allocation(CULET_EVENT_CALLOC, total, block);
    return block;
}

/* The size of an early block is not known: copies up to the end of early memory. */
static void *copy_early(const void *block, size_t bytes)
{
    const char *end;
    void *copy = malloc(bytes);

    culet_early_owns(block, &end);
    if (copy) {
        size_t readable = (size_t)(end - (const char *)block);
        memcpy(copy, block, bytes < readable ? bytes : readable);
    }
    return copy;
}

EXPORT void *realloc(void *block, size_t bytes)
{
    if (!block)
        return malloc(bytes);
    if (__builtin_expect(is_early(block) || !culet_next_ready(), 0))
        return copy_early(block, bytes);

    uint64_t before = culet_next_sequence();
    void *moved = culet_next.realloc(block, bytes);
    int saved = errno;
    record_realloc(block, bytes, moved, before);
    errno = saved;
    return moved;
}

EXPORT void *reallocarray(void *block, size_t count, size_t bytes)
{
    size_t total;

    if (__builtin_mul_overflow(count, bytes, &total))
        return out_of_memory();
    return realloc(block, total);
}

/* ---- aligned ---- */

static size_t round_up_to_power(size_t alignment)
{
    return alignment <= 1 ? 1 : (size_t)1 << (sizeof(long) * CHAR_BIT - (unsigned)__builtin_clzl(alignment - 1));
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, alignment);

    void *block = culet_next.memalign(alignment, bytes);
    record_aligned(round_up_to_power(alignment), bytes, block);
    return block;
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    if (__builtin_expect(!culet_next_ready(), 0))
        return culet_early_malloc(bytes, alignment);

    void *block = culet_next.aligned_alloc(alignment, bytes);
    record_aligned(round_up_to_power(alignment), bytes, block);
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
        record_aligned(round_up_to_power(alignment), bytes, *block);
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
