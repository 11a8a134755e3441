/* engine.h - replays operations with the malloc of this process. */
#pragma once

#include "operations.h"

/* Which bytes of a block are written when it is allocated or grows. */
enum culet_touch {
    CULET_TOUCH_NONE,
    CULET_TOUCH_PAGE, /* one byte of each 4 KiB */
    CULET_TOUCH_LINE, /* one byte of each 64 */
    CULET_TOUCH_ALL,
    CULET_TOUCH_CHECK /* all, with a value of the block that is checked when the block is freed */
};

struct culet_sample {
    uint64_t index;        /* operations so far */
    uint64_t microseconds; /* of the recorded program at this point, since the recording's start */
    uint64_t wall_ns;      /* since the replay's start */
    uint64_t live_bytes;   /* requested and not freed */
    uint64_t resident_bytes;
};

struct culet_replay_options {
    enum culet_touch touch;
    bool paced; /* whether to keep the program's pauses */
};

struct culet_replay_result {
    struct culet_sample *samples;
    size_t sample_count;
    uint64_t cpu_ns; /* of the operations, without turns and samples */
    uint64_t wall_ns;
    bool has_instructions;
    uint64_t instructions; /* in user mode */
};

/* Ends the program with a message when the allocator runs out of memory, or CHECK finds changed bytes. */
struct culet_replay_result culet_replay(const struct culet_operations *operations,
                                        const struct culet_replay_options *options);
