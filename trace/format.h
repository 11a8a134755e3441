/* format.h - the file in which a program's allocations are recorded. Little-endian, as all of culet's processors.
 *
 *   header | chunk | chunk | ...
 *
 * While it is recorded, the file grows by chunks of CULET_TRACE_CHUNK bytes, one for each thread at a time. A thread
 * fills its chunk in memory (the stage, below), and the file gets it when it is full. When the program has ended,
 * `culet trace` cuts off the chunks' unused ends ("packing"). Both forms are read alike: a chunk starts where the one
 * before ends, rounded up to a multiple of `stride`.
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

/* ---- the stage ----
 *
 * Chunks that are being filled: memory without a name (memfd_create, sealed against shrinking) that `culet trace` holds
 * and that recorders map. So what is recorded survives whatever ends the process, and no file is mapped, which somebody
 * could cut off: that would end the program by SIGBUS. `culet trace` copies from there into the files now and then, and
 * when the program has ended. Lock: whoever writes into a chunk of a trace file holds flock(2) on the file; a slot is
 * given up under the lock.
 *
 *   table | CULET_STAGE_SLOTS bodies of CULET_TRACE_CHUNK bytes */
#define CULET_STAGE_MAGIC "culetstg"
#define CULET_STAGE_SLOTS 4095u

enum culet_stage_state { CULET_SLOT_FREE, CULET_SLOT_TAKEN, CULET_SLOT_FILLED };

struct culet_stage_slot {
    _Atomic uint32_t state; /* FILLED: the rest of this is right, and the body is a chunk */
    uint32_t owner;     /* process number, as it sees itself */
    uint32_t file_pid;  /* the trace file: the name that the user gave, ... */
    uint32_t file_try;  /* ... 0: alone; 1: with .PID behind it; more: with .PID.TRY */
    uint64_t offset;    /* of the chunk in the trace file */
    uint64_t device, inode; /* of the trace file */
    uint64_t namespace; /* inode of the owner's PID namespace; 0: not known */
    uint64_t reserved[2];
};
_Static_assert(sizeof(struct culet_stage_slot) == 64, "slots lie as Culet::Trace::Stage reads them");

struct culet_stage {
    char magic[8];
    uint32_t collector; /* process number of `culet trace` */
    _Atomic uint32_t closed; /* nobody copies any more */
    _Atomic uint32_t reached; /* slots from here on were never taken */
    uint32_t reserved[11];
    struct culet_stage_slot slots[CULET_STAGE_SLOTS];
};
_Static_assert(sizeof(struct culet_stage) == 4 * CULET_TRACE_CHUNK, "bodies start at a page, whatever its size");

static inline uint64_t culet_trace_rotate(uint64_t address)
{
    return address >> 3 | address << 61;
}

static inline uint64_t culet_trace_unrotate(uint64_t value)
{
    return value << 3 | value >> 61;
}

#endif
