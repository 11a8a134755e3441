/* os.h - the kernel's calls, and nothing else. All of them leave errno alone. */
#ifndef CULET_OS_H
#define CULET_OS_H

#include "types.h"

/* Bytes per page of the running kernel. */
size_t culet_os_page_bytes(void);

/* Maps zeroed, private, readable and writable memory.
 * bytes: a multiple of the page size. Returns NULL when the kernel refuses. */
void *culet_os_map(size_t bytes);

/* As culet_os_map, aligned to `alignment` (a power of two, at least a page). */
void *culet_os_map_aligned(size_t bytes, size_t alignment);

/* Maps zeroed memory over whatever is at `start`; false when the kernel refuses. Both: multiples of the page size. */
bool culet_os_map_at(void *start, size_t bytes);

/* Gives a mapping back. When the kernel cannot split a mapping (its map count is at the limit) the pages
 * are returned and the address space stays: false then. */
bool culet_os_unmap(void *start, size_t bytes);

/* Returns the pages that lie wholly inside the range; they read as zeros afterwards.
 * Returns the bytes given back (0 when the kernel refuses, as it does for locked memory). */
size_t culet_os_purge(uintptr_t start, size_t bytes);

/* Resizes a mapping where it is; false when the kernel cannot, and nothing has changed. */
bool culet_os_resize(void *start, size_t old_bytes, size_t new_bytes);

/* Moves the pages of a mapping over another one, of new_bytes, which they replace; false when the kernel
 * refuses: then what was to be moved has not changed, but the target may be a hole. */
bool culet_os_move(void *start, size_t old_bytes, void *target, size_t new_bytes);

/* Has the kernel give every forked child zeros in place of the mapping; false where it cannot (before Linux 4.14). */
bool culet_os_wipe_on_fork(void *start, size_t bytes);

/* Sleeps while *word == value; wakes one sleeper. */
void culet_os_wait(_Atomic uint32_t *word, uint32_t value);
void culet_os_wake(_Atomic uint32_t *word);

/* A full memory barrier on every running thread of the process. culet_os_barrier_setup tells whether the
 * kernel has it (Linux 4.14; a sandbox may forbid it). */
bool culet_os_barrier_setup(void);
bool culet_os_barrier(void);

/* Lets others run: yields the processor, or sleeps for so many microseconds. */
void culet_os_pause(unsigned microseconds);

/* Writes to stderr, whole, as far as stderr takes it. */
void culet_os_write_error(const char *text, size_t bytes);

#ifdef CULET_TEST
/* Tests refuse memory through this: called before each mapping; true refuses it. */
extern bool (*culet_os_refuse)(void);
#endif

#endif
