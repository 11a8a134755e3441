#define _GNU_SOURCE
#include "trace.h"

#include "complain.h"
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the file ---- */

static void check_header(const struct culet_trace *trace)
{
    const struct culet_trace_header *header = trace->header;
    size_t told = trace->size < sizeof header->magic ? trace->size : sizeof header->magic;

    if (memcmp(header->magic, CULET_TRACE_MAGIC, told) != 0)
        culet_complain("%s is not a trace of culet's; `culet trace -o FILE -- COMMAND` records one", trace->path);
    if (trace->size < sizeof *header)
        culet_complain("%s is truncated: it ends within its header; copy it again or record again", trace->path);
    if (header->version > CULET_TRACE_VERSION)
        culet_complain("%s was recorded by a newer culet (format %u); replay it with that one", trace->path,
                       header->version);
    if (header->version == 0 || header->header_bytes < sizeof *header || header->header_bytes > CULET_TRACE_CHUNK ||
        header->stride == 0 || header->stride > CULET_TRACE_CHUNK || header->command_bytes > sizeof header->command)
        culet_complain("%s is damaged: its header makes no sense; record again", trace->path);
}

/* As many bytes as there are. */
static size_t read_at(const struct culet_trace *trace, void *bytes, size_t count, uint64_t offset)
{
    size_t done = 0;

    while (done < count) {
        ssize_t got = pread(trace->file, (char *)bytes + done, count - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            culet_complain("cannot read %s: %s", trace->path, strerror(errno));
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return done;
}

struct culet_trace culet_trace_open(const char *path)
{
    struct culet_trace trace = {.path = path};
    struct stat status;

    trace.file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (trace.file < 0 || fstat(trace.file, &status) != 0)
        culet_complain("cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        culet_complain("%s is not a file; name one that `culet trace` wrote", path);
    if (status.st_size == 0)
        culet_complain("%s is empty; `culet trace -o FILE -- COMMAND` records a trace", path);
    struct culet_trace_header *header = culet_store_new(1, sizeof *header);
    trace.header = header;
    trace.size = read_at(&trace, header, sizeof *header, 0);
    if (trace.size == sizeof *header)
        trace.size = (uint64_t)status.st_size;
    check_header(&trace);
    return trace;
}

/* ---- events ---- */

struct cursor {
    const struct culet_trace *trace;
    const uint8_t *at, *end;
    const uint8_t *start; /* of the chunk, ... */
    uint64_t offset;      /* ... and where it stands in the file */
    uint32_t thread;
    uint64_t expected, got, gone, microseconds;
};

static _Noreturn void damaged(const struct cursor *cursor)
{
    culet_complain("%s is damaged at byte %llu; copy it again or record again", cursor->trace->path,
                   (unsigned long long)(cursor->offset + (uint64_t)(cursor->at - cursor->start)));
}

static uint64_t number(struct cursor *cursor)
{
    uint64_t value = 0;

    for (unsigned shift = 0; cursor->at < cursor->end && shift < 64; shift += 7) {
        uint8_t byte = *cursor->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    damaged(cursor);
}

static uint64_t difference(struct cursor *cursor)
{
    uint64_t zigzag = number(cursor);

    return zigzag >> 1 ^ (0 - (zigzag & 1));
}

static uint64_t small_or_number(struct cursor *cursor, uint8_t first)
{
    return first >> CULET_EVENT_SMALL ? (uint64_t)(first >> CULET_EVENT_SMALL) * 8 : number(cursor);
}

static uint64_t got(struct cursor *cursor)
{
    uint64_t rotated = cursor->got + difference(cursor);

    if (rotated)
        cursor->got = rotated;
    return culet_trace_unrotate(rotated);
}

static uint64_t gone(struct cursor *cursor)
{
    cursor->gone += difference(cursor);
    return culet_trace_unrotate(cursor->gone);
}

static void operands(struct cursor *cursor, uint8_t first, struct culet_raw *raw)
{
    switch (raw->event) {
    case CULET_EVENT_MALLOC:
    case CULET_EVENT_CALLOC:
        raw->bytes = small_or_number(cursor, first);
        raw->got = got(cursor);
        break;
    case CULET_EVENT_FREE:
        raw->gone = gone(cursor);
        break;
    case CULET_EVENT_REALLOC:
        raw->gone = gone(cursor);
        raw->bytes = small_or_number(cursor, first);
        raw->got = got(cursor);
        raw->after = raw->sequence + 1 + number(cursor);
        cursor->expected = raw->after + 1;
        break;
    case CULET_EVENT_ALIGNED:
        raw->shift = (unsigned)number(cursor);
        raw->bytes = number(cursor);
        raw->got = got(cursor);
        if (raw->shift > 47)
            damaged(cursor);
        break;
    default:
        damaged(cursor);
    }
    if (raw->bytes >> 48)
        damaged(cursor);
}

/* One event; false for one that is about the others. */
static bool step(struct cursor *cursor, struct culet_raw *raw)
{
    uint8_t first = *cursor->at++;

    *raw = (struct culet_raw){.event = first & CULET_EVENT_MASK};
    if (raw->event == CULET_EVENT_TIME) {
        cursor->microseconds = number(cursor);
        return false;
    }
    if (raw->event == CULET_EVENT_THREAD) {
        cursor->thread = (uint32_t)number(cursor);
        cursor->expected = number(cursor);
        cursor->got = cursor->gone = 0;
        return false;
    }
    raw->sequence = cursor->expected + (first & CULET_EVENT_SKIP ? number(cursor) : 0);
    raw->thread = cursor->thread;
    raw->microseconds = cursor->microseconds;
    cursor->microseconds = 0;
    cursor->expected = raw->sequence + 1;
    operands(cursor, first, raw);
    return true;
}

static _Noreturn void truncated(const struct culet_trace *trace, uint64_t there)
{
    culet_complain("%s is truncated: it ends after %llu bytes, within part %llu of %llu; copy it again or record again",
                   trace->path, (unsigned long long)trace->size, (unsigned long long)there + 1,
                   (unsigned long long)trace->header->chunks);
}

/* Reads the events of a chunk, and how many bytes it has in use; ends the program where it is not whole. */
static uint32_t read_chunk(struct cursor *cursor, struct culet_trace_chunk *chunk, uint64_t index)
{
    const struct culet_trace *trace = cursor->trace;

    if (cursor->offset > trace->size || read_at(trace, chunk, sizeof *chunk, cursor->offset) < sizeof *chunk)
        truncated(trace, index);
    uint32_t used = atomic_load_explicit(&chunk->used, memory_order_relaxed);
    cursor->start = cursor->at = (const uint8_t *)chunk;
    if (chunk->magic != CULET_TRACE_CHUNK_MAGIC || used < sizeof *chunk || used > CULET_TRACE_CHUNK)
        damaged(cursor);
    if (trace->size - cursor->offset < used ||
        read_at(trace, chunk->events, used - sizeof *chunk, cursor->offset + sizeof *chunk) < used - sizeof *chunk)
        truncated(trace, index);
    cursor->at = chunk->events;
    cursor->end = cursor->start + used;
    return used;
}

void culet_trace_each(const struct culet_trace *trace, void (*tell)(void *with, const struct culet_raw *raw), void *with)
{
    const struct culet_trace_header *header = trace->header;
    struct culet_trace_chunk *chunk = culet_store_new(1, CULET_TRACE_CHUNK);
    uint64_t offset = header->header_bytes;

    /* Each step forward is one of at least a chunk's first bytes, so a file's length bounds the steps. */
    for (uint64_t i = 0; i < header->chunks; i++) {
        struct cursor cursor = {.trace = trace, .offset = offset};
        uint32_t used = read_chunk(&cursor, chunk, i);
        struct culet_raw raw;
        while (cursor.at < cursor.end)
            if (step(&cursor, &raw))
                tell(with, &raw);
        /* A raw file's parts are of full length, also where they are not used up. */
        offset += ((uint64_t)used + header->stride - 1) / header->stride * header->stride;
    }
    culet_store_free(chunk, 1, CULET_TRACE_CHUNK);
}
