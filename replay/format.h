/* format.h - the trace file: every allocation of one process. Little-endian.
 *
 *   header | chunk | chunk | ...
 *
 * A recording adds chunks of CULET_TRACE_CHUNK bytes; one thread at a time writes to a chunk. The thread fills the chunk
 * in memory; the file receives its events in parts. A chunk starts at the end of the previous one, rounded up to a
 * multiple of `stride`: of CULET_TRACE_CHUNK, and 8 in files that an earlier culet has packed.
 *
 * A chunk is a sequence of events. An event is one byte and its operands:
 *
 *   bits 0-2  the event (enum culet_event)
 *   bit  3    the sequence number is not the expected one: the difference is the first operand ("skip")
 *   bits 4-7  of events with a size: size / 8 for the sizes 8, 16, ... 120; otherwise 0, and the size is an operand
 *
 *   MALLOC   [skip] [size] allocated               CALLOC   likewise
 *   FREE     [skip] freed
 *   REALLOC  [skip] freed [size] allocated wait    allocated = 0: realloc returned NULL
 *   ALIGNED  [skip] shift size allocated           alignment 1 << shift
 *   TIME     microseconds since the header's monotonic_ns
 *   THREAD   number sequence                       the following events are this thread's; `sequence` is expected next
 *   EXEC                                           the first event of a chunk: this and the following chunks are those of
 *                                                  the next program that the process executed, whose memory and sequence
 *                                                  begin anew
 *
 * Operands are varints (LEB128). `allocated` and `freed` are addresses, rotated right by three bits, as the zigzag
 * difference from the previous allocated or freed address of this thread in this chunk (0 after THREAD).
 *
 * Order: the process has one sequence. A number is taken after a block is allocated and before a block is freed, so the
 * numbers order the events of each block across threads, and an address is freed before it is allocated again. Realloc
 * takes two numbers: the event's own before the call and another one after it, `wait` numbers later than the next.
 * A realloc to 0 bytes that returned NULL freed the block; with any other size it failed, and the block stays. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CULET_TRACE_MAGIC "culettrc"
#define CULET_TRACE_VERSION 1

/* A multiple of every page size (4, 16, 64 KiB); about 13,000 events. */
#define CULET_TRACE_CHUNK 65536u
#define CULET_TRACE_HEADER 4096u

enum culet_event {
    CULET_EVENT_EXEC,
    CULET_EVENT_MALLOC,
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

/* The longest event: one byte and five varints of at most ten bytes. */
#define CULET_EVENT_MAX 51u

/* Sizes fit 48 bits, alignments 47. */
#define CULET_EVENT_SIZE_BITS 48

/* Why a recording ended before its program. */
enum culet_trace_stop { CULET_STOP_NONE, CULET_STOP_SPACE, CULET_STOP_LIMIT, CULET_STOP_FILE };

/* Of the last program of the process, except forked_at, parent and parent_execs, which are of the first one, and the
 * times, which are of the recording. */
struct culet_trace_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes; /* where the first chunk starts */
    uint32_t stride;
    uint32_t page_bytes; /* of the machine */
    _Atomic uint64_t chunks;
    uint64_t forked_at;  /* in a forked child: the parent's events below this number precede it; otherwise 0 */
    uint64_t started_ns; /* CLOCK_REALTIME */
    uint64_t monotonic_ns;
    _Atomic uint64_t lost; /* calls that were not recorded */
    uint32_t pid;
    uint32_t parent_pid;
    _Atomic uint32_t stopped; /* enum culet_trace_stop */
    uint32_t command_bytes;
    char parent[256];                       /* file name of the parent's trace, without the directory; or "" */
    char allocator[128];                    /* as given to `culet trace --allocator` */
    char machine[32];                       /* uname -m */
    char command[CULET_TRACE_HEADER - 520]; /* /proc/self/cmdline */
    uint64_t process_start;                 /* of the process, in clock ticks since boot; 0: not known */
    uint64_t pid_namespace;                 /* inode; 0: not known */
    uint32_t execs;                         /* programs of the process before this one */
    uint32_t parent_execs;                  /* in a forked child: `execs` of the parent at the fork */
};
_Static_assert(sizeof(struct culet_trace_header) == CULET_TRACE_HEADER, "the header is one block");

#define CULET_TRACE_CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */

struct culet_trace_chunk {
    uint32_t magic;
    _Atomic uint32_t used; /* bytes, including these eight; stored last, so that an event counts once it is complete */
    uint8_t events[];
};

/* ---- operands: each encoding beside its decoding ---- */

static inline uint8_t *culet_encode_number(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* Advances `*at`; false for a number that is not complete before `end`, or longer than 64 bits. */
static inline bool culet_decode_number(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static inline uint64_t culet_encode_difference(uint64_t difference)
{
    return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t culet_decode_difference(uint64_t zigzag)
{
    return zigzag >> 1 ^ (0 - (zigzag & 1));
}

static inline uint64_t culet_encode_address(uint64_t address)
{
    return address >> 3 | address << 61;
}

static inline uint64_t culet_decode_address(uint64_t value)
{
    return value << 3 | value >> 61;
}

/* The bits for a small size in the first byte; 0 where the size is an operand. */
static inline unsigned culet_encode_small(uint64_t size)
{
    return size - 1 < 120 && size % 8 == 0 ? (unsigned)(size / 8) << CULET_EVENT_SMALL : 0;
}

static inline uint64_t culet_decode_small(uint8_t first)
{
    return (uint64_t)(first >> CULET_EVENT_SMALL) * 8;
}
