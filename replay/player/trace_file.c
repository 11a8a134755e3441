#define _GNU_SOURCE
#include "trace_file.h"

#include "mapping.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the file ---- */

static void check_header(const struct culet_trace_file *trace)
{
    const struct culet_trace_header *header = trace->header;
    size_t length = trace->size < sizeof header->magic ? trace->size : sizeof header->magic;

    if (memcmp(header->magic, CULET_TRACE_MAGIC, length) != 0)
        errx(1, "%s is not a culet trace; `culet trace -o FILE -- COMMAND` records one", trace->path);
    if (trace->size < sizeof *header)
        errx(1, "%s is truncated: it ends in the header; copy it again or record again", trace->path);
    if (header->version > CULET_TRACE_VERSION)
        errx(1, "%s was recorded by a newer culet (format %u); replay it with that version", trace->path,
             header->version);
    if (header->version == 0 || header->header_bytes < sizeof *header || header->header_bytes > CULET_TRACE_CHUNK ||
        header->stride == 0 || header->stride > CULET_TRACE_CHUNK || header->command_bytes > sizeof header->command)
        errx(1, "%s is damaged: its header is invalid; record again", trace->path);
}

/* @return the number of bytes read, fewer at the end of the file */
static size_t read_at(const struct culet_trace_file *trace, void *bytes, size_t count, uint64_t offset)
{
    size_t done = 0;

    while (done < count) {
        ssize_t got = pread(trace->fd, (char *)bytes + done, count - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            err(1, "cannot read %s", trace->path);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return done;
}

struct culet_trace_file culet_trace_file_open(const char *path)
{
    struct culet_trace_file trace = {.path = path};
    struct stat status;

    trace.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (trace.fd < 0 || fstat(trace.fd, &status) != 0)
        err(1, "cannot read %s", path);
    if (!S_ISREG(status.st_mode))
        errx(1, "%s is not a file; name one that `culet trace` wrote", path);
    if (status.st_size == 0)
        errx(1, "%s is empty; `culet trace -o FILE -- COMMAND` records a trace", path);
    struct culet_trace_header *header = culet_mapping_new(1, sizeof *header);
    trace.header = header;
    trace.size = read_at(&trace, header, sizeof *header, 0);
    if (trace.size == sizeof *header)
        trace.size = (uint64_t)status.st_size;
    check_header(&trace);
    return trace;
}

/* ---- events ---- */

struct cursor {
    const struct culet_trace_file *trace;
    const uint8_t *at, *end;
    const uint8_t *start; /* of the chunk */
    uint64_t offset;      /* of the chunk in the file */
    uint32_t thread;
    uint64_t expected, allocated, freed, microseconds;
};

static _Noreturn void damaged(const struct cursor *cursor)
{
    errx(1, "%s is damaged at byte %llu; copy it again or record again", cursor->trace->path,
         (unsigned long long)(cursor->offset + (uint64_t)(cursor->at - cursor->start)));
}

static uint64_t number(struct cursor *cursor)
{
    uint64_t value;

    if (!culet_decode_number(&cursor->at, cursor->end, &value))
        damaged(cursor);
    return value;
}

static uint64_t difference(struct cursor *cursor)
{
    return culet_decode_difference(number(cursor));
}

static uint64_t size(struct cursor *cursor, uint8_t first)
{
    uint64_t small = culet_decode_small(first);

    return small ? small : number(cursor);
}

static uint64_t allocated_address(struct cursor *cursor)
{
    uint64_t address = cursor->allocated + difference(cursor);

    if (address)
        cursor->allocated = address;
    return culet_decode_address(address);
}

static uint64_t freed_address(struct cursor *cursor)
{
    cursor->freed += difference(cursor);
    return culet_decode_address(cursor->freed);
}

static void read_operands(struct cursor *cursor, uint8_t first, struct culet_trace_event *event)
{
    switch (event->kind) {
    case CULET_EVENT_MALLOC:
    case CULET_EVENT_CALLOC:
        event->bytes = size(cursor, first);
        event->allocated = allocated_address(cursor);
        break;
    case CULET_EVENT_FREE:
        event->freed = freed_address(cursor);
        break;
    case CULET_EVENT_REALLOC:
        event->freed = freed_address(cursor);
        event->bytes = size(cursor, first);
        event->allocated = allocated_address(cursor);
        event->end_sequence = event->sequence + 1 + number(cursor);
        if (event->end_sequence <= event->sequence)
            damaged(cursor);
        cursor->expected = event->end_sequence + 1;
        break;
    case CULET_EVENT_ALIGNED:
        event->shift = (unsigned)number(cursor);
        event->bytes = number(cursor);
        event->allocated = allocated_address(cursor);
        if (event->shift >= CULET_EVENT_SIZE_BITS)
            damaged(cursor);
        break;
    default:
        damaged(cursor);
    }
    if (event->bytes >> CULET_EVENT_SIZE_BITS)
        damaged(cursor);
}

/* Reads one event; false for TIME, THREAD and EXEC. */
static bool read_event(struct cursor *cursor, struct culet_trace_event *event)
{
    uint8_t first = *cursor->at++;

    *event = (struct culet_trace_event){.kind = first & CULET_EVENT_MASK};
    if (event->kind == CULET_EVENT_EXEC && cursor->at - 1 == cursor->start + sizeof(struct culet_trace_chunk))
        return false;
    if (event->kind == CULET_EVENT_TIME) {
        cursor->microseconds = number(cursor);
        return false;
    }
    if (event->kind == CULET_EVENT_THREAD) {
        cursor->thread = (uint32_t)number(cursor);
        cursor->expected = number(cursor);
        cursor->allocated = cursor->freed = 0;
        return false;
    }
    event->sequence = cursor->expected + (first & CULET_EVENT_SKIP ? number(cursor) : 0);
    event->thread = cursor->thread;
    event->microseconds = cursor->microseconds;
    cursor->microseconds = 0;
    cursor->expected = event->sequence + 1;
    read_operands(cursor, first, event);
    return true;
}

static _Noreturn void truncated(const struct culet_trace_file *trace, uint64_t index)
{
    errx(1, "%s is truncated: it ends after %llu bytes, in chunk %llu of %llu; copy it again or record again",
         trace->path, (unsigned long long)trace->size, (unsigned long long)index + 1,
         (unsigned long long)trace->header->chunks);
}

/* Reads a chunk and returns its used bytes; ends the program where it is not complete. */
static uint32_t read_chunk(struct cursor *cursor, struct culet_trace_chunk *chunk, uint64_t index)
{
    const struct culet_trace_file *trace = cursor->trace;

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

static bool begins_program(const struct culet_trace_chunk *chunk, uint32_t used)
{
    return used > sizeof *chunk && chunk->events[0] == CULET_EVENT_EXEC;
}

void culet_trace_file_each(const struct culet_trace_file *trace, uint32_t program,
                           void (*visit)(void *context, const struct culet_trace_event *event), void *context)
{
    const struct culet_trace_header *header = trace->header;
    struct culet_trace_chunk *chunk = culet_mapping_new(1, CULET_TRACE_CHUNK);
    uint64_t offset = header->header_bytes, current = 0;

    /* Every chunk has at least its header, so the file's length bounds the loop, whatever `chunks` says. */
    for (uint64_t i = 0; i < header->chunks; i++) {
        struct cursor cursor = {.trace = trace, .offset = offset};
        uint32_t used = read_chunk(&cursor, chunk, i);
        struct culet_trace_event event;
        current += begins_program(chunk, used);
        while (cursor.at < cursor.end)
            if (read_event(&cursor, &event) && current == program)
                visit(context, &event);
        offset += ((uint64_t)used + header->stride - 1) / header->stride * header->stride;
    }
    culet_mapping_free(chunk, 1, CULET_TRACE_CHUNK);
}
