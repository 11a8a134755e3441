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

/* Marks the environment, or takes the library out of LD_PRELOAD; false while libc has no environ yet. Does not call
 * setenv, which the program may be executing. */
bool culet_program_mark(void);

/* Whether this program is Ruby, by the name of its file. */
bool culet_program_ruby(void);

/* The level of hardening. */
unsigned culet_program_hardening(void);

/* The mean distance of samples of the profile; 0: off. */
uint64_t culet_program_profile_bytes(void);

/* The file that the profile is written to at exit; "" for none, NULL: its name is too long. */
const char *culet_program_profile_out(void);

/* Seconds between two files of a profile while the program runs; 0: none. */
unsigned culet_program_profile_seconds(void);

/* The scavenger's interval in milliseconds. */
unsigned culet_program_decay_ms(void);
