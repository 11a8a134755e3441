/* stage.h - the memory that chunks lie in while they are filled: a slot of the stage (format.h) where `culet trace` holds
 * one, so that nothing is lost when the process is killed; else memory of the process alone. */
#ifndef CULET_STAGE_H
#define CULET_STAGE_H

#include "../format.h"

#include <stdbool.h>
#include <sys/stat.h>

/* Stands behind its chunk. A forked child has neither. */
struct culet_loan {
    struct culet_loan *next, *before; /* the file's list */
    struct culet_stage_slot *slot;    /* NULL: memory of this process alone */
    uint64_t offset;                  /* of the chunk in the file */
    uint32_t flushed;                 /* bytes of the chunk that the file has */
};

/* @return a chunk whose events are to go to that place of that file; NULL when there is no memory */
struct culet_trace_chunk *culet_stage_take(const struct stat *file, uint32_t file_pid, uint32_t file_try, uint64_t offset);

/* Gives the chunk's memory up. `left`: the file could not be written; a slot stays filled, for `culet trace` to copy. */
void culet_stage_give(struct culet_trace_chunk *chunk, bool left);

static inline struct culet_loan *culet_stage_loan(struct culet_trace_chunk *chunk)
{
    return (struct culet_loan *)((char *)chunk + CULET_TRACE_CHUNK);
}

/* Whether `culet trace` copies what the chunk holds, also when this process is killed now. */
bool culet_stage_collected(const struct culet_loan *loan);

#endif
