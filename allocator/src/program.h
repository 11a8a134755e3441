/* program.h - what the preloaded library should be in this program: at work, or asleep.
 *
 * LD_PRELOAD is inherited by every program that a Ruby server starts: browsers, git, image tools. culet
 * serves Ruby; those others are left to the allocator they were tested with. CULET_CHILDREN decides:
 *     ruby  (default) a Ruby process marks its environment (CULET_INHERITED=1); a program that finds the
 *           mark and is not Ruby gets the library dormant: every call goes on to libc's allocator
 *     all   every program is served
 *     none  the library takes itself out of LD_PRELOAD when it is loaded, so that no child sees it
 * A program without the mark was given the library on purpose and is always served. */
#ifndef CULET_PROGRAM_H
#define CULET_PROGRAM_H

#include "types.h"

/* Whether this program is to be left to libc's allocator. Works before libc is initialised. */
bool culet_program_dormant(void);

/* Marks the environment, or takes the library out of it; false while libc has no environ yet. Does not use
 * setenv, in the middle of which the program may be. */
bool culet_program_mark(void);

/* Whether this program is Ruby, by its file's name. */
bool culet_program_ruby(void);

#endif
