#define _GNU_SOURCE
#include "chunks.h"

#include "file.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* New events of a chunk are written from this size on: a write takes as long as some hundred events, and the death of
 * the process loses what is not written. */
#define FLUSH_BYTES 1024

/* Follows its chunk in memory. A forked child has neither. */
struct culet_chunk_info {
    struct culet_chunk_info *next, *previous; /* chunks in use */
    uint64_t offset;                          /* of the chunk in the file */
    uint32_t flushed;                         /* bytes of the chunk that the file has */
};

static struct culet_chunk_info *info_of(struct culet_trace_chunk *chunk)
{
    return (struct culet_chunk_info *)((char *)chunk + CULET_TRACE_CHUNK);
}

static struct culet_trace_chunk *chunk_of(struct culet_chunk_info *info)
{
    return (struct culet_trace_chunk *)((char *)info - CULET_TRACE_CHUNK);
}

static size_t mapped_bytes(void)
{
    return CULET_TRACE_CHUNK + (size_t)sysconf(_SC_PAGESIZE);
}

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

/* A chunk without events of threads at the end of the file. A child must not write to it. */
static struct culet_trace_chunk *append_at(int fd, uint64_t offset, uint64_t count)
{
    void *memory = mmap(NULL, mapped_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct culet_trace_chunk *chunk = memory;
    uint64_t more = count + 1;

    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, mapped_bytes(), MADV_DONTFORK);
    chunk->magic = CULET_TRACE_CHUNK_MAGIC;
    atomic_store(&chunk->used, sizeof *chunk);
    put_exec(chunk);
    *info_of(chunk) = (struct culet_chunk_info){.offset = offset, .flushed = atomic_load(&chunk->used)};
    int error = culet_file_write(fd, chunk, info_of(chunk)->flushed, offset);
    if (!error)
        error = culet_file_write(fd, &more, sizeof more, offsetof(struct culet_trace_header, chunks));
    if (error) {
        munmap(chunk, mapped_bytes());
        errno = error;
        return NULL;
    }
    atomic_store(&culet_process->header->chunks, more);
    add_to_list(info_of(chunk));
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
    int fd = culet_file_open(offset);
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
    struct culet_chunk_info *info = info_of(chunk);
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

static void write_chunk(struct culet_trace_chunk *chunk)
{
    int fd = culet_file_open(info_of(chunk)->offset + CULET_TRACE_CHUNK);
    int error = fd < 0 ? errno : write_events(fd, chunk);

    if (fd >= 0)
        close(fd);
    if (error && !atomic_load(&culet_process->stopped))
        culet_file_fail(error);
}

/* ---- */

void culet_chunks_finish(struct culet_trace_chunk *chunk)
{
    culet_file_lock();
    write_chunk(chunk);
    remove_from_list(info_of(chunk));
    munmap(chunk, mapped_bytes());
    culet_file_unlock();
}

void culet_chunks_flush(struct culet_trace_chunk *chunk)
{
    if (atomic_load_explicit(&chunk->used, memory_order_relaxed) - info_of(chunk)->flushed < FLUSH_BYTES)
        return;
    culet_file_lock();
    write_chunk(chunk);
    culet_file_unlock();
}

void culet_chunks_flush_all(void)
{
    if (!atomic_load(&culet_process->epoch))
        return;
    culet_file_lock();
    for (struct culet_chunk_info *info = culet_process->chunks; info; info = info->next)
        write_chunk(chunk_of(info));
    culet_file_unlock();
}

void culet_chunks_return(struct culet_trace_chunk *chunk)
{
    culet_file_lock();
    if (culet_process->spare_count < sizeof culet_process->spare / sizeof *culet_process->spare) {
        write_chunk(chunk);
        culet_process->spare[culet_process->spare_count++] = chunk;
        chunk = NULL;
    }
    culet_file_unlock();
    if (chunk)
        culet_chunks_finish(chunk);
}
