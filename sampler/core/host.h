/* host.h - what the libraries that sample malloc have in common: libculet.so, and the sampler for other allocators
 * (sampler/preload). Both read
 *
 *     CULET_PROFILE=SIZE      starts at the program's start; SIZE: mean distance of two samples in bytes, or in k, m, g;
 *                             1: CULET_PROFILE_DEFAULT_BYTES; 0, or no size: off
 *     CULET_PROFILE_OUT=FILE  writes the stream of profile.h to FILE when a program that is not Ruby exits; %p in it is
 *                             the process id. Ruby programs write it themselves, with their frames */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of CULET_PROFILE in bytes; 0: off. */
uint64_t culet_host_parse(const char *value);

/* Whether this program is Ruby, by the name of its file. */
bool culet_host_ruby(void);

/* Once, before the profile starts. `has_epochs`: it is a program without Ruby, whose epochs have ten seconds. */
void culet_host_setup(bool has_epochs);

/* Begins the epochs that are due. A sample does so, too. */
void culet_host_advance_epoch(void);

/* Adds a sample of malloc, of the block at `block`, with the calling thread's stack, without the library's own frames. Returns its number, or 0 if
 * there is no room. */
uint32_t culet_host_add(const void *block, size_t bytes, double weight);

/* The resident bytes of the process, read every few milliseconds at most; NULL where /proc cannot be read. For
 * culet_profile_set_host. */
typedef uint64_t culet_host_resident_bytes(void);
culet_host_resident_bytes *culet_host_resident(void);

/* A copy of a value of CULET_PROFILE_OUT, one per process; NULL: it is too long. */
const char *culet_host_keep_out(const char *value);

/* The path that CULET_PROFILE_OUT names: %p becomes the process id. False: too long. */
bool culet_host_expand(const char *pattern, char *path, size_t room);

/* Writes the stream to a file, whole or not at all, and readable by its owner only. False: it was not possible, which a
 * line on stderr says. */
bool culet_host_write(const char *path);

/* At exit: writes the stream to the file that a value of CULET_PROFILE_OUT names. NULL: the value is too long. False:
 * it was not possible, which a line on stderr says. */
bool culet_host_write_at_exit(const char *pattern);

/* Writes a line to stderr; errno stays as it is. */
void culet_host_complain(const char *text);
