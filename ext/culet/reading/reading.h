/* reading/reading.h - what a process uses now: one struct, of which the agent's answer, the record of the black box and
 * the Hash for Ruby are encodings.
 *
 * Native threads can read: Ruby's counts are noted by Ruby threads (reading/ruby_stats.h). */
#pragma once

#include <ruby.h>
#include <stdbool.h>

#include "reading/budget.h"
#include "reading/group.h"

/* CULET_UNKNOWN where a reader does not ask, or is not told. Bytes and counts; times are nanoseconds of CLOCK_REALTIME,
 * when the figures behind them were read. The black box writes the struct as it is: members are added at the end
 * only. */
struct culet_reading {
    uint64_t resident, shared;                                       /* all pages; those of files and shared memory */
    uint64_t rollup_time;                                            /* of the next four */
    uint64_t proportional, private_dirty, swapped, anonymous;        /* smaps_rollup */
    uint64_t malloc_time, malloc_used, malloc_free, malloc_metadata; /* resident, but for glibc's free bytes */
    uint64_t ruby_time, live_slots, slots, ruby_pages;               /* of the next eight, too; ruby_pages: bytes */
    uint64_t collections, major_gcs, malloc_increase, oldmalloc_increase, allocated_objects;
    uint64_t group_charged, group_limit, group_reclaimable, group_kills;
    uint64_t group_stall;     /* of earlier versions; CULET_UNKNOWN */
    uint64_t running, events; /* requests and jobs that run; that have begun since the start */
    uint64_t profile_bytes;   /* what the memory profile estimates as live */
    uint64_t processor_time;  /* of the black box, nanoseconds */
    uint64_t minor_gcs, gc_milliseconds;
    uint64_t trims, trim_returned;
    uint64_t profile, limit; /* 1: the memory profile runs, culet/limit watches a limit */
};

#define CULET_READING_FIELDS (sizeof(struct culet_reading) / sizeof(uint64_t))

/* The names of the members, in their order. */
extern const char *const culet_reading_names[CULET_READING_FIELDS];

/* The used bytes of the group's limit, by culet_group_used. */
uint64_t culet_reading_used(const struct culet_reading *reading);

/* More than a JSON object of all members has. */
#define CULET_READING_JSON_BYTES (CULET_READING_FIELDS * 50)

/* Writes the known members as a JSON object of Integers. Returns its length. */
size_t culet_reading_json(const struct culet_reading *reading, char *text);

/* ---- readers ---- */

/* Of one thread: what is read, and what its last readings found. */
struct culet_reader {
    const char *folder; /* of the process, see reading/process.h; NULL: CULET_OWN_PROCESS */
    struct culet_group group;
    struct culet_budget rollup, malloc, group_stat;
    struct culet_reading reading;
};

/* A pace: a reading that takes long rests for this multiple of its cost, and for at least so many nanoseconds. */
struct culet_pace {
    uint64_t rest_per_cost, least;
};

/* Finds out what Ruby counts, and what a page of its heap has. With the GVL, not during GC. May raise. */
void culet_reading_prepare(void);

/* Begins with nothing read. Also in a forked child, whose figures begin anew. */
void culet_reader_reset(struct culet_reader *reader);

/* These bring a part of reader->reading up to date. */
void culet_reader_sizes(struct culet_reader *reader);
void culet_reader_rollup(struct culet_reader *reader, struct culet_pace pace);
void culet_reader_malloc(struct culet_reader *reader, struct culet_pace pace);
void culet_reader_ruby(struct culet_reader *reader);

/* The resident size of this process as a reader last found it. In any thread. */
uint64_t culet_last_resident_bytes(void);

/* The charged bytes; what can be reclaimed of them at its pace. */
void culet_reader_group_used(struct culet_reader *reader, struct culet_pace pace);

/* The limit and kills of the group. */
void culet_reader_group(struct culet_reader *reader);

/* ---- in Ruby ---- */

/* Defines Culet::Reading:
 *   FIELDS         the names of the members of struct culet_reading, in the order of a black box's record
 *   REST_PER_COST  how many times as long as it took a count of malloc's blocks rests
 *   read(folder, files) */
void culet_init_reading(VALUE culet);

/* The group of files: paths as of Culet::MemoryGroup.files (charged, limit, statistics, kills), nil where there is none.
 * A path that is too long leads to no file. May raise. */
struct culet_group culet_group_of(VALUE files);
