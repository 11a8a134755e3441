/* blackbox/reader.h - what the black box reads of the process, in its native thread. */
#ifndef CULET_BLACKBOX_READER_H
#define CULET_BLACKBOX_READER_H

#include "reading/reading.h"

/* The files of the control group whose limit counts; an empty path: none. */
#define CULET_GROUP_PATH 512
struct culet_group_paths {
    char charged[CULET_GROUP_PATH], limit[CULET_GROUP_PATH], stat[CULET_GROUP_PATH];
    char kills[CULET_GROUP_PATH], pressure[CULET_GROUP_PATH];
};

/* Finds out what Ruby counts. With the GVL, not during GC. May raise. */
void culet_box_reader_prepare(const struct culet_group_paths *paths);

/* Notes Ruby's counts for the next reading if they are older than half a second. now: of CLOCK_REALTIME. In a Ruby thread.
 * Allocates nothing. */
void culet_box_reader_note_ruby(uint64_t now);

/* Everything; what takes long, at intervals of which it takes a thousandth. */
struct culet_reading culet_box_reader_second(void);

/* Between two seconds: the resident size and the group's use; malloc's blocks for up to a fiftieth of the time. */
struct culet_reading culet_box_reader_fast(void);

/* The resident size as last read. In any thread. */
uint64_t culet_box_reader_resident(void);

/* In a forked child: its figures begin anew. */
void culet_box_reader_reset(void);

#endif
