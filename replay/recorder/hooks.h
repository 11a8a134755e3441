/* hooks.h - records the calls of the malloc functions (../interposer/api.c). */
#pragma once

#include "writer.h"

static inline void culet_hook_allocated(size_t bytes, const void *block, bool zeroed)
{
    struct culet_writer *writer = block ? culet_writer_begin() : NULL;
    if (!writer)
        return;

    unsigned small = culet_encode_small(bytes), event = zeroed ? CULET_EVENT_CALLOC : CULET_EVENT_MALLOC;
    uint8_t *at = culet_put_event(writer, culet_writer_at(writer), event | small, culet_next_sequence());
    at = culet_put_size(at, small, bytes);
    at = culet_put_address(at, &writer->allocated, block);
    culet_writer_end(writer, at);
}

static inline void culet_hook_aligned(size_t alignment, size_t bytes, const void *block)
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

static inline void culet_hook_free(const void *block)
{
    struct culet_writer *writer = culet_writer_begin();
    if (!writer)
        return;

    uint8_t *at = culet_put_event(writer, culet_writer_at(writer), CULET_EVENT_FREE, culet_next_sequence());
    at = culet_put_address(at, &writer->freed, block);
    culet_writer_end(writer, at);
}

/* Returns what culet_hook_realloc gets as `before`: the sequence number. */
static inline uint64_t culet_hook_before_realloc(const void *block)
{
    (void)block;
    return culet_next_sequence();
}

/* `allocated` may be NULL. */
static inline void culet_hook_realloc(const void *block, size_t bytes, const void *allocated, uint64_t before)
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
