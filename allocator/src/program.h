/* program.h - what the preloaded library does in this program, and the settings it reads from the environment.
 *
 * Every program that a Ruby server starts inherits LD_PRELOAD: browsers, git, image tools. They are left to the
 * allocator that they were tested with. CULET_CHILDREN decides:
 *     ruby  (default) a Ruby process marks its environment (CULET_INHERITED=1). In a program that finds the mark and is
 *           not Ruby the library is dormant: every call goes to libc's allocator
 *     all   every program is served
 *     none  the library takes itself out of LD_PRELOAD when it is loaded, so no child gets it
 * A program without the mark was given the library on purpose and is always served.
 *
 * CULET_DECAY: the scavenger's interval in milliseconds (reclaim_policy.h).
 * CULET_HARDEN: the level of hardening (harden.h).
 * CULET_PROFILE: the memory profile (profiler.h); CULET_PROFILE_OUT, CULET_PROFILE_EVERY: its files (profile_file.h). */
#pragma once

#include "types.h"

/* Reads the settings. Returns whether the library is dormant in this program. Works before libc is initialised. */
bool culet_program_dormant(void);

/* Reports values that are not accepted on stderr, a line each; once the heap is set up. */
void culet_program_report(void);

/* Marks the environment, or takes the library out of LD_PRELOAD; false while libc has no environ yet. Does not call
 * setenv, which the program may be executing. */
bool culet_program_mark(void);

/* Whether this program is Ruby, by the name of its file. */
bool culet_program_ruby(void);

/* The result of culet_program_dormant. */
extern struct culet_settings {
    unsigned decay_ms;        /* the scavenger's interval */
    unsigned hardening;       /* the level */
    unsigned profile_seconds; /* between two files of a profile while the program runs; 0: none */
    uint64_t profile_bytes;   /* mean distance of the profile's samples; 0: off */
    const char *profile_out; /* the file that the profile is written to at exit; "": none, NULL: its name is too long */
} culet_settings;
