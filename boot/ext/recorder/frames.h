/* recorder/frames.h - the requires in progress, a stack per thread, and the lines that the recording has of them. */
#pragma once

#include "common/buffer.h"
#include "recorder/counters.h"

/* A require in progress. RubyGems' method starts one without a name (marked), and gets its name from the C function
 * that it calls; a second attempt after activating a gem belongs to the same one. Other requires have their name from
 * the start. */
struct frame {
    struct frame *up;
    struct culet_counters start;
    uint32_t id; /* 0: not written yet */
    uint32_t tag_before;
    int marked;
    int named;
    int running;                      /* calls of the C function in progress */
    int compiled;                     /* the file was compiled */
    VALUE result;                     /* Qtrue, Qfalse, or the class of the exception; Qundef: left otherwise (throw) */
    struct culet_counters before_run; /* when the file was compiled */
};

struct culet_recording {
    uint32_t last_id;
    uint32_t first_id; /* of this process; a forked process continues its parent's numbers */
    int has_syscall_counter;
    double start_seconds;
};

extern struct culet_recording culet_recording;
extern __thread struct frame *culet_frames_top;

/* Starts a require. Returns NULL without memory. */
struct frame *culet_frames_push(int marked, const struct culet_counters *start);

/* Names a require and writes its line. how: the method */
void culet_frames_name(struct frame *frame, const char *how, VALUE what);

/* Ends a require, with those above it, which a fiber left behind. */
void culet_frames_pop(struct frame *frame, const struct culet_counters *now);

/* Whether the require is in progress. */
int culet_frames_include(const struct frame *frame);

/* Writes and empties the buffer. outer: the requires in progress, for the first lines of a file. */
void culet_frames_write(struct culet_buffer *buffer, const struct frame *outer);

/* Add a member to a JSON object. */
void culet_frames_add_string(struct culet_buffer *buffer, const char *key, VALUE string);
void culet_frames_add_counters(struct culet_buffer *buffer, const struct culet_counters *counters);
