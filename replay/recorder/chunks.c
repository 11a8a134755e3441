#define _GNU_SOURCE
#include "chunks.h"

#include "file.h"

#include <errno.h>
#include <unistd.h>

static void add_to_list(struct culet_chunk_info *info)
{
    info->next = culet_process->chunks;
    if (info->next)
        info->next->previous = info;
    culet_process->chunks = info;
}

static void remove_from_list(struct culet_chunk_info *info)
{
    if (info->next)
        info->next->previous = info->previous;
    if (info->previous)
        info->previous->next = info->next;
    else
        culet_process->chunks = info->next;
}

/* ---- taking; the lock is held ---- */

/* The first chunk of an executed program says that the memory of the one before is gone. */
static void put_exec(struct culet_trace_chunk *chunk)
{
    if (!culet_process->executed)
        return;
    culet_process->executed = false;
    chunk->events[0] = CULET_EVENT_EXEC;
    atomic_store(&chunk->used, (uint32_t)sizeof *chunk + 1);
}

/* A chunk without events of threads at the end of the file. */
static struct culet_trace_chunk *append_at(int fd, uint64_t offset, uint64_t count)
{
    struct culet_trace_chunk *chunk = culet_buffer_take(culet_file_id(), offset);
    uint64_t more = count + 1;

    if (!chunk) {
        errno = ENOMEM;
        return NULL;
    }
    put_exec(chunk);
    culet_chunk_info(chunk)->flushed = atomic_load(&chunk->used);
    int error = culet_file_write(fd, chunk, culet_chunk_info(chunk)->flushed, offset);
    if (!error)
        error = culet_file_write(fd, &more, sizeof more, offsetof(struct culet_trace_header, chunks));
    if (error) {
        culet_buffer_release(chunk, false);
        errno = error;
        return NULL;
    }
    atomic_store(&culet_process->header->chunks, more);
    add_to_list(culet_chunk_info(chunk));
    return chunk;
}

static struct culet_trace_chunk *append(void)
{
    const struct culet_trace_header *header = culet_process->header;
    uint64_t count = atomic_load(&header->chunks);
    uint64_t offset = header->header_bytes + count * CULET_TRACE_CHUNK;
    struct culet_trace_chunk *chunk = NULL;

    if (culet_file_limit && count >= culet_file_limit) {
        culet_file_stop(CULET_STOP_LIMIT, "its file has reached the limit", 0);
        return NULL;
    }
    int fd = culet_file_open(offset, NULL);
    int error = fd < 0 ? errno : culet_file_reserve(fd, offset);
    if (!error) {
        chunk = append_at(fd, offset, count);
        error = chunk ? 0 : errno;
    }
    if (fd >= 0)
        close(fd);
    if (error)
        culet_file_fail(error);
    return chunk;
}

struct culet_trace_chunk *culet_chunks_take(void)
{
    struct culet_trace_chunk *chunk = NULL;

    if (!culet_file_prepare())
        return NULL;
    culet_file_lock();
    if (culet_file_create())
        chunk = culet_process->spare_count ? culet_process->spare[--culet_process->spare_count] : append();
    culet_file_unlock();
    return chunk;
}

/* ---- writing; the lock is held ---- */

/* The new events, then the count that makes them valid. */
static int write_events(int fd, struct culet_trace_chunk *chunk)
{
    struct culet_chunk_info *info = culet_chunk_info(chunk);
    uint32_t used = atomic_load_explicit(&chunk->used, memory_order_acquire);

    if (used == info->flushed)
        return 0;
    int error =
        culet_file_write(fd, (const char *)chunk + info->flushed, used - info->flushed, info->offset + info->flushed);
    if (!error)
        error = culet_file_write(fd, &used, sizeof used, info->offset + offsetof(struct culet_trace_chunk, used));
    if (!error)
        info->flushed = used;
    return error;
}

/* `last`: releases the chunk under the file's lock, so that `culet trace` does not write an older copy afterwards.
 * Without the lock the chunk stays in the recording buffer, and `culet trace` writes it once more. */
static void write_chunk(struct culet_trace_chunk *chunk, bool last)
{
    struct culet_chunk_info *info = culet_chunk_info(chunk);
    bool locked = false;
    int fd = culet_file_open(info->offset + CULET_TRACE_CHUNK, &locked);
    int error = fd < 0 ? errno : write_events(fd, chunk);

    if (last) {
        remove_from_list(info);
        culet_buffer_release(chunk, error || !locked);
    }
    if (fd >= 0)
        close(fd);
    if (error && !atomic_load(&culet_process->stopped))
        culet_file_fail(error);
}

/* ---- */

void culet_chunks_finish(struct culet_trace_chunk *chunk)
{
    culet_file_lock();
    write_chunk(chunk, true);
    culet_file_unlock();
}

void culet_chunks_flush(struct culet_trace_chunk *chunk)
{
    if (culet_buffer_collects(culet_chunk_info(chunk)))
        return;
    culet_file_lock();
    write_chunk(chunk, false);
    culet_file_unlock();
}

void culet_chunks_flush_all(void)
{
    if (!atomic_load(&culet_process->epoch))
        return;
    culet_file_lock();
    for (struct culet_chunk_info *info = culet_process->chunks; info; info = info->next)
        if (!culet_buffer_collects(info))
            write_chunk(culet_chunk_of(info), false);
    culet_file_unlock();
}

void culet_chunks_return(struct culet_trace_chunk *chunk)
{
    bool kept = false;

    culet_chunks_flush(chunk);
    culet_file_lock();
    if (culet_process->spare_count < sizeof culet_process->spare / sizeof *culet_process->spare) {
        culet_process->spare[culet_process->spare_count++] = chunk;
        kept = true;
    }
    culet_file_unlock();
    if (!kept)
        culet_chunks_finish(chunk);
}
