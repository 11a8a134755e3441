/* writer.h - appends the events of one thread to its chunk. */
#pragma once

#include "chunks.h"
#include "file.h"

#include <stdbool.h>
#include <stddef.h>

/* Equal to no epoch, not even to the 0 of a child without a file. */
#define CULET_NO_EPOCH UINT64_MAX

struct culet_writer {
    struct culet_trace_chunk *chunk; /* or NULL */
    uint64_t epoch;                  /* of the process that took the chunk; a forked child does not write to it */
    uint64_t ready_epoch;            /* = epoch while the next event needs no preparation; or CULET_NO_EPOCH */
    uint64_t expected;               /* sequence number */
    uint64_t allocated, freed;       /* the previous addresses, encoded */
    uint32_t countdown;              /* events until culet_writer_pause */
    uint32_t number;                 /* of this thread, from 1 */
    bool busy;                       /* allocations by signal handlers and by the recorder are not recorded */
    bool exiting;                    /* destructors are running: the chunk is returned after each event */
};

extern _Thread_local struct culet_writer culet_writer __attribute__((tls_model("initial-exec")));

/* Takes a chunk with room for an event and writes a TIME event. False when nothing is recorded. */
bool culet_writer_prepare(struct culet_writer *writer);

/* Flushes the chunk and requests a TIME event, after a fixed number of events. */
void culet_writer_pause(struct culet_writer *writer);

/* ---- one event: begin, put ..., end ---- */

static inline uint64_t culet_next_sequence(void)
{
    return atomic_fetch_add_explicit(&culet_sequence, 1, memory_order_relaxed);
}

/* The thread's writer, busy until culet_writer_end; NULL when the event is not recorded. */
static inline struct culet_writer *culet_writer_begin(void)
{
    struct culet_writer *writer = &culet_writer;

    if (__builtin_expect(writer->busy, 0)) {
        culet_file_count_lost();
        return NULL;
    }
    writer->busy = true;
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(!writer->chunk ||
                             writer->ready_epoch != atomic_load_explicit(&culet_process->epoch, memory_order_relaxed) ||
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
    return culet_encode_number(at, skipped);
}

static inline uint8_t *culet_put_size(uint8_t *at, unsigned small, size_t bytes)
{
    return small ? at : culet_encode_number(at, bytes);
}

static inline uint8_t *culet_put_address(uint8_t *at, uint64_t *last, const void *address)
{
    uint64_t encoded = culet_encode_address((uintptr_t)address);
    uint8_t *end = culet_encode_number(at, culet_encode_difference(encoded - *last));

    *last = encoded;
    return end;
}

/* Makes the event valid. */
static inline void culet_writer_end(struct culet_writer *writer, const uint8_t *at)
{
    atomic_store_explicit(&writer->chunk->used, (uint32_t)(at - (uint8_t *)writer->chunk), memory_order_release);
    if (__builtin_expect(--writer->countdown == 0, 0))
        culet_writer_pause(writer);
    atomic_signal_fence(memory_order_seq_cst);
    writer->busy = false;
}
