#define _GNU_SOURCE
#include "trace.h"

#include "complain.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the file ---- */

static void check_header(const struct culet_trace *trace)
{
    const struct culet_trace_header *header = trace->header;
    size_t told = trace->size < sizeof header->magic ? trace->size : sizeof header->magic;

    if (memcmp(trace->bytes, CULET_TRACE_MAGIC, told) != 0)
        culet_complain("%s is not a trace of culet's; `culet trace -o FILE -- COMMAND` records one", trace->path);
    if (trace->size < sizeof *header)
        culet_complain("%s is truncated: it ends within its header; copy it again or record again", trace->path);
    if (header->version > CULET_TRACE_VERSION)
        culet_complain("%s was recorded by a newer culet (format %u); replay it with that one", trace->path,
                       header->version);
    if (header->version == 0 || header->header_bytes < sizeof *header || header->stride == 0 ||
        header->command_bytes > sizeof header->command)
        culet_complain("%s is damaged: its header makes no sense; record again", trace->path);
}

struct culet_trace culet_trace_open(const char *path)
{
    struct culet_trace trace = {.path = path};
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &status) != 0)
        culet_complain("cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        culet_complain("%s is not a file; name one that `culet trace` wrote", path);
    if (status.st_size == 0)
        culet_complain("%s is empty; `culet trace -o FILE -- COMMAND` records a trace", path);
    trace.size = (size_t)status.st_size;
    void *mapped = mmap(NULL, trace.size, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        culet_complain("cannot read %s: %s", path, strerror(errno));
    close(fd);
    trace.bytes = mapped;
    trace.header = mapped;
    check_header(&trace);
    return trace;
}

/* ---- events ---- */

struct cursor {
    const struct culet_trace *trace;
    const uint8_t *at, *end;
    uint32_t thread;
    uint64_t expected, got, gone, microseconds;
};

static _Noreturn void damaged(const struct culet_trace *trace, const uint8_t *at)
{
    culet_complain("%s is damaged at byte %zu; copy it again or record again", trace->path, (size_t)(at - trace->bytes));
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
    damaged(cursor->trace, cursor->at);
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
            damaged(cursor->trace, cursor->at);
        break;
    default:
        damaged(cursor->trace, cursor->at);
    }
    if (raw->bytes >> 48)
        damaged(cursor->trace, cursor->at);
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
    culet_complain("%s is truncated: it ends after %zu bytes, within part %llu of %llu; copy it again or record again",
                   trace->path, trace->size, (unsigned long long)there + 1, (unsigned long long)trace->header->chunks);
}

void culet_trace_each(const struct culet_trace *trace, void (*tell)(void *with, const struct culet_raw *raw), void *with)
{
    const struct culet_trace_header *header = trace->header;
    uint64_t chunks = header->chunks;
    size_t offset = header->header_bytes;

    for (uint64_t i = 0; i < chunks; i++) {
        const struct culet_trace_chunk *chunk = (const void *)(trace->bytes + offset);
        if (offset > trace->size || trace->size - offset < sizeof *chunk)
            truncated(trace, i);
        uint32_t used = atomic_load_explicit((_Atomic uint32_t *)&chunk->used, memory_order_acquire);
        if (chunk->magic != CULET_TRACE_CHUNK_MAGIC || used < sizeof *chunk || used > CULET_TRACE_CHUNK)
            damaged(trace, (const uint8_t *)chunk);
        if (trace->size - offset < used)
            truncated(trace, i);

        struct cursor cursor = {.trace = trace, .at = chunk->events, .end = (const uint8_t *)chunk + used};
        struct culet_raw raw;
        while (cursor.at < cursor.end)
            if (step(&cursor, &raw))
                tell(with, &raw);
        /* A raw file's parts are of full length, also where they are not used up. */
        offset += (used + header->stride - 1) / header->stride * (size_t)header->stride;
    }
}
