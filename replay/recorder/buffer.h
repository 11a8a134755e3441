/* buffer.h - memory for the chunks that are being filled: a slot of the recording buffer (format.h) where `culet trace`
 * provides one, so that SIGKILL loses nothing; otherwise private memory. */
#pragma once

#include "../format.h"

/* The trace file of a chunk, as in struct culet_buffer_slot. */
struct culet_file_id {
    uint64_t device, inode;
    uint32_t pid, number;
};

/* Follows its chunk in memory. A forked child has neither. */
struct culet_chunk_info {
    struct culet_chunk_info *next, *previous; /* chunks in use */
    struct culet_buffer_slot *slot;           /* NULL: private memory */
    uint64_t offset;                          /* of the chunk in the file */
    uint32_t flushed;                         /* bytes of the chunk that the file has */
};

/* @return an empty chunk for that offset of that file; NULL without memory */
struct culet_trace_chunk *culet_buffer_take(const struct culet_file_id *file, uint64_t offset);

/* Releases the chunk's memory. `unwritten`: the file does not have all of it, or another writer may still replace it by an
 * older copy; a slot stays filled, for `culet trace` to copy. */
void culet_buffer_release(struct culet_trace_chunk *chunk, bool unwritten);

static inline struct culet_chunk_info *culet_chunk_info(struct culet_trace_chunk *chunk)
{
    return (struct culet_chunk_info *)((char *)chunk + CULET_TRACE_CHUNK);
}

static inline struct culet_trace_chunk *culet_chunk_of(struct culet_chunk_info *info)
{
    return (struct culet_trace_chunk *)((char *)info - CULET_TRACE_CHUNK);
}

/* The inode of this process's PID namespace; 0: not known. */
uint64_t culet_buffer_pid_namespace(void);

/* Whether `culet trace` copies the chunk, even if this process is killed now. */
bool culet_buffer_collects(const struct culet_chunk_info *info);
