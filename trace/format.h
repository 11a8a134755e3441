/* format.h - the file in which a program's allocations are recorded. Little-endian, as all of culet's processors.
 *
 *   header | chunk | chunk | ...
 *
 * While it is recorded, the file grows by chunks of CULET_TRACE_CHUNK bytes, each mapped by the thread that writes
 * into it: what is written is in the kernel's hands at once, so that it survives whatever ends the process. When the
 * program has ended, `culet trace` cuts off the chunks' unused ends ("packing"). Both forms are read alike: a chunk
 * starts where the one before ends, rounded up to a multiple of `stride`.
 *
 * A chunk is a stream of events, each one byte and what belongs to it:
 *
 *   bits 0-2  the event (enum culet_event)
 *   bit  3    the thread's sequence number is not the one expected: how much greater follows first
 *   bits 4-7  of events that get memory: the bytes / 8, if that is 1 to 15 exactly, else 0 and the bytes follow
 *
 *   MALLOC   [skip] [bytes] got                    CALLOC   likewise
 *   FREE     [skip] gone
 *   REALLOC  [skip] gone [bytes] got wait          got 0: nothing was got, see below
 *   ALIGNED  [skip] shift bytes got                aligned to 1 << shift
 *   TIME     microseconds since the header's monotonic_ns
 *   THREAD   number sequence                       what follows was done by this thread; `sequence` is expected next
 *
 * Numbers are varints: seven bits to a byte, the lowest first, the top bit set on all but the last. `got` and `gone`
 * are addresses, rotated right by three bits and told as the zigzag difference to the last address got or gone in
 * this chunk by this thread (0 after THREAD).
 *
 * Order. A sequence number, one for the process, is taken after a block was got and before it is given up. So by
 * their numbers a block's events are in order, whichever threads they are from, and an address is given up before it
 * is got again. Realloc does both and takes two numbers: the event's own before the call, and, `wait` numbers after
 * the one following it, another after the call. A realloc of 0 bytes that got nothing freed the block; of more bytes,
 * it failed and the block stays.
 */
#ifndef CULET_TRACE_FORMAT_H
#define CULET_TRACE_FORMAT_H

#include <stdatomic.h>
#include <stdint.h>

#define CULET_TRACE_MAGIC "culettrc"
#define CULET_TRACE_VERSION 1

/* A multiple of every page size there is (4, 16, 64 KiB); at some five bytes to an event the kernel is called once in
 * 13,000 events. */
#define CULET_TRACE_CHUNK 65536u
#define CULET_TRACE_HEADER 4096u

enum culet_event {
    CULET_EVENT_MALLOC = 1,
    CULET_EVENT_FREE,
    CULET_EVENT_REALLOC,
    CULET_EVENT_CALLOC,
    CULET_EVENT_ALIGNED,
    CULET_EVENT_TIME,
    CULET_EVENT_THREAD
};

#define CULET_EVENT_MASK 7u
#define CULET_EVENT_SKIP 8u
#define CULET_EVENT_SMALL 4 /* shift of the bits for a small size */

/* An event is at most one byte and five varints of at most ten. */
#define CULET_EVENT_MAX 51u

/* Why a recording ended before its program. */
enum culet_trace_stop { CULET_STOP_NONE, CULET_STOP_SPACE, CULET_STOP_LIMIT, CULET_STOP_FILE };

struct culet_trace_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes; /* where the first chunk starts */
    uint32_t stride;
    uint32_t page_bytes; /* of the machine */
    _Atomic uint64_t chunks;
    uint64_t forked_at; /* a forked child: all of the parent's numbers below this one came before it; else 0 */
    uint64_t started_ns; /* CLOCK_REALTIME */
    uint64_t monotonic_ns;
    _Atomic uint64_t lost; /* calls that could not be recorded */
    uint32_t pid;
    uint32_t parent_pid;
    _Atomic uint32_t stopped; /* enum culet_trace_stop */
    uint32_t command_bytes;
    char parent[256];   /* name, without its folder, of the file of the process that forked this one; or "" */
    char allocator[128]; /* as `culet trace --allocator` had it */
    char machine[32];   /* uname -m */
    char command[CULET_TRACE_HEADER - 496]; /* /proc/self/cmdline */
};
_Static_assert(sizeof(struct culet_trace_header) == CULET_TRACE_HEADER, "the header is one block");

#define CULET_TRACE_CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */

struct culet_trace_chunk {
    uint32_t magic;
    _Atomic uint32_t used; /* bytes, these eight among them; an event counts when it is in here */
    uint8_t events[];
};

static inline uint64_t culet_trace_rotate(uint64_t address)
{
    return address >> 3 | address << 61;
}

static inline uint64_t culet_trace_unrotate(uint64_t value)
{
    return value << 3 | value >> 61;
}

#endif
