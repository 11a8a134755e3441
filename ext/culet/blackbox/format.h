/* blackbox/format.h - the file that a process keeps about itself, for `culet autopsy`.
 *
 *   0        head        what the process is
 *   2048     holders     looks at what keeps its memory, the latest 2
 *   4096     end         how it ended, as it says itself
 *   4608     witness     how it ended, as another process has seen
 *   5120     fast        readings between two seconds, the latest 16
 *   10240    seconds     readings, one per second, the latest 160
 *   61440    running     requests and jobs that have begun, at most 128
 *   102400   finished    the latest 128 that have ended
 *   126976   notes       limits and steps, the latest 64
 *   143360   profile     the largest sites, twice: the older one is overwritten
 *
 * The file has CULET_BOX_BYTES. Each table is an array of slots of equal size; a slot begins with a record. A record is
 * whole if its checksum fits: a process that is killed while it writes one leaves one that is not, and the reader goes
 * without it. A table is written in turns, so the record that is lost is the oldest. Numbers are little-endian. */
#pragma once

#include <stdint.h>

#include "reading/reading.h"

#define CULET_BOX_BYTES 262144u

struct culet_box_record {
    uint32_t checksum; /* CRC-32 (zlib) of all that follows, from `length` to the end of the payload */
    uint32_t length;   /* of the payload, which follows */
    uint64_t number;   /* from 1 on, in the order of the table's records; an unused slot has 0 */
    uint64_t time;     /* nanoseconds of CLOCK_REALTIME */
};

enum culet_box_table {
    CULET_BOX_HEAD,     /* lines "name value", the first "culet-blackbox 1" */
    CULET_BOX_END,      /* a word (exit, exec, error), and for people what else there is to say */
    CULET_BOX_WITNESS,  /* lines "name value" */
    CULET_BOX_FAST,     /* struct culet_reading */
    CULET_BOX_SECONDS,  /* likewise */
    CULET_BOX_RUNNING,  /* struct culet_box_event; the number is unique among events */
    CULET_BOX_FINISHED, /* likewise, with the number that it had among the running ones */
    CULET_BOX_NOTES,    /* struct culet_box_note */
    CULET_BOX_HOLDERS, /* struct culet_brief.text (retain/brief.h). Older readers take it for a part of the head's slot */
    CULET_BOX_PROFILE, /* a stream of sampler/core/profile.h with the largest sites, and lines "B malloc_bytes object_bytes" */
    CULET_BOX_TABLES
};

struct culet_box_place {
    uint32_t offset, slot_bytes, slots;
};

#define CULET_BOX_PLACES                                                                                               \
    {                                                                                                                  \
        [CULET_BOX_HEAD] = {0, 2048, 1}, [CULET_BOX_HOLDERS] = {2048, 1024, 2}, [CULET_BOX_END] = {4096, 512, 1},      \
        [CULET_BOX_WITNESS] = {4608, 512, 1}, [CULET_BOX_FAST] = {5120, 320, 16},                                      \
        [CULET_BOX_SECONDS] = {10240, 320, 160}, [CULET_BOX_RUNNING] = {61440, 320, 128},                              \
        [CULET_BOX_FINISHED] = {102400, 192, 128}, [CULET_BOX_NOTES] = {126976, 256, 64},                              \
        [CULET_BOX_PROFILE] = {143360, 59392, 2},                                                                      \
    }

/* Within a running event's slot: a second record with the event's number, whose payload is its label since. */
#define CULET_BOX_RELABEL 184

#define CULET_BOX_LABEL 96

struct culet_box_event {
    uint64_t ended;                           /* nanoseconds of CLOCK_REALTIME; 0: it runs */
    uint64_t started;                         /* likewise */
    uint64_t thread;                          /* the kernel's number */
    uint64_t resident_before, resident_after; /* as last read */
    uint64_t objects_before, objects_after;   /* allocated by the process */
    char label[CULET_BOX_LABEL];              /* UTF-8, to the end of the payload */
};

struct culet_box_note {
    uint64_t bytes; /* the limit, or what a step has freed */
    char text[208]; /* "limit SOURCE", "step NAME", to the end of the payload */
};
