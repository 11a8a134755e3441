/* writer.h - what one thread writes into its chunk. */
#ifndef CULET_WRITER_H
#define CULET_WRITER_H

#include "../format.h"
#include "file.h"

#include <stdbool.h>
#include <stddef.h>

/* No epoch, not even the 0 of a child that has no file yet. */
#define CULET_NO_PASS UINT64_MAX

struct culet_writer {
    struct culet_trace_chunk *chunk; /* on loan; NULL for none */
    uint64_t epoch;                  /* the loan's: no other process's chunk is written into */
    uint64_t pass;                   /* the epoch while events go straight in; CULET_NO_PASS: look at the clock first */
    uint64_t expected;               /* sequence number */
    uint64_t got, gone;              /* the last addresses, rotated */
    uint32_t countdown;              /* events until culet_writer_pause */
    uint32_t number;                 /* of this thread */
    bool busy;                       /* recording: what a signal handler, or our own doing, allocates is not recorded */
    bool leaving;                    /* the thread is about to end, so no loan outlasts an event */
};

extern _Thread_local struct culet_writer culet_writer __attribute__((tls_model("initial-exec")));

/* Looks at the clock, and gets a chunk with room for an event. False when this thread records nothing, now or any
 * more. */
bool culet_writer_prepare(struct culet_writer *writer);

/* After every so many events: the next one is to have the time before it, or no loan lasts. */
void culet_writer_pause(struct culet_writer *writer);

/* ---- one event: begin, put ..., end ---- */

static inline uint8_t *culet_put(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

static inline uint64_t culet_zigzag(uint64_t difference)
{
    return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static inline uint64_t culet_next_sequence(void)
{
    return atomic_fetch_add_explicit(&culet_sequence, 1, memory_order_relaxed);
}

/* The thread's writer, ready for one event and busy until culet_writer_end; NULL when it is not to be recorded. */
static inline struct culet_writer *culet_writer_begin(void)
{
    struct culet_writer *writer = &culet_writer;

    if (__builtin_expect(writer->busy, 0)) {
        culet_file_lost();
        return NULL;
    }
    writer->busy = true;
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(!writer->chunk ||
                             writer->pass != atomic_load_explicit(&culet_shared->epoch, memory_order_relaxed) ||
                             atomic_load_explicit(&writer->chunk->used, memory_order_relaxed) >
                                 CULET_TRACE_CHUNK - 2 * CULET_EVENT_MAX,
                         0) &&
        !culet_writer_prepare(writer)) {
        writer->busy = false;
        return NULL;
    }
    return writer;
}

/* Where the next event goes. */
static inline uint8_t *culet_writer_at(const struct culet_writer *writer)
{
    return (uint8_t *)writer->chunk + atomic_load_explicit(&writer->chunk->used, memory_order_relaxed);
}

/* The event's first byte and its sequence number. */
static inline uint8_t *culet_put_event(struct culet_writer *writer, uint8_t *at, unsigned event, uint64_t sequence)
{
    uint64_t skipped = sequence - writer->expected;

    writer->expected = sequence + 1;
    if (__builtin_expect(skipped == 0, 1)) {
        *at++ = (uint8_t)event;
        return at;
    }
    *at++ = (uint8_t)(event | CULET_EVENT_SKIP);
    return culet_put(at, skipped);
}

/* Bits for the event's first byte: the size, where they can tell it. */
static inline unsigned culet_small_bits(size_t bytes)
{
    return bytes - 1 < 120 && bytes % 8 == 0 ? (unsigned)(bytes / 8) << CULET_EVENT_SMALL : 0;
}

static inline uint8_t *culet_put_bytes(uint8_t *at, unsigned small, size_t bytes)
{
    return small ? at : culet_put(at, bytes);
}

static inline uint8_t *culet_put_address(uint8_t *at, uint64_t *last, const void *address)
{
    uint64_t rotated = culet_trace_rotate((uintptr_t)address);
    uint8_t *end = culet_put(at, culet_zigzag(rotated - *last));

    *last = rotated;
    return end;
}

/* The event counts from here on, whatever becomes of the process. */
static inline void culet_writer_end(struct culet_writer *writer, const uint8_t *at)
{
    atomic_store_explicit(&writer->chunk->used, (uint32_t)(at - (uint8_t *)writer->chunk), memory_order_release);
    if (__builtin_expect(--writer->countdown == 0, 0))
        culet_writer_pause(writer);
    atomic_signal_fence(memory_order_seq_cst);
    writer->busy = false;
}

#endif
