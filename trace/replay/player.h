/* player.h - does a script's operations again, with whatever malloc this process has. */
#ifndef CULET_PLAYER_H
#define CULET_PLAYER_H

#include "script.h"

/* How a block's bytes are written when it is got or grows, as a program would. */
enum culet_touch {
    CULET_TOUCH_NONE,
    CULET_TOUCH_PAGE,  /* one byte of each 4 KiB */
    CULET_TOUCH_LINE,  /* one byte of each 64 */
    CULET_TOUCH_ALL,   /* every byte */
    CULET_TOUCH_CHECK  /* every byte with a value of the block's, which is looked at again when the block is given up */
};

struct culet_sample {
    uint64_t index; /* operations that were done by then */
    uint64_t microseconds; /* since the recording's start, when that was the recorded program's state */
    uint64_t wall_ns;      /* since the replay's start */
    uint64_t live_bytes;   /* requested and not freed */
    uint64_t resident_bytes;
};

struct culet_settings {
    enum culet_touch touch;
    bool paced;     /* whether pauses are kept */
    size_t samples; /* about how many; at least 1 */
};

struct culet_performance {
    struct culet_sample *samples;
    size_t sample_count;
    uint64_t cpu_ns;  /* of the operations; neither passing on nor sampling is in it */
    uint64_t wall_ns; /* of all */
    bool counted;
    uint64_t instructions; /* in user mode, where counted */
};

/* Plays it; ends the program with a sentence when the allocator gives no memory, or CHECK finds bytes changed. */
struct culet_performance culet_play(const struct culet_script *script, const struct culet_settings *settings);

#endif
