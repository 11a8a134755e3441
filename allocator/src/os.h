/* os.h - the kernel's calls, and nothing else. All of them leave errno alone. */
#pragma once

#include "types.h"

/* The kernel's page size. */
size_t culet_os_page_bytes(void);

/* Processors that the process may use; at least 1. */
unsigned culet_os_processors(void);

/* Maps whole pages of zeroed, private, readable and writable memory; NULL when the kernel refuses. */
void *culet_os_map(size_t bytes);

/* Maps zeroed, private, readable and writable memory at a multiple of `alignment` (a power of two, at least a kernel
 * page); NULL when the kernel refuses. bytes: a multiple of the kernel page. */
void *culet_os_map_aligned(size_t bytes, size_t alignment);

/* Maps zeroed memory over the range; false when the kernel refuses. Both are multiples of the kernel page. */
bool culet_os_map_at(void *start, size_t bytes);

/* Unmaps a range. False when the kernel cannot split the mapping (its map count is at the limit): the pages are
 * returned then, and the address space stays. */
bool culet_os_unmap(void *start, size_t bytes);

/* Returns to the kernel the pages that lie wholly inside the range; they read as zeros afterwards. Returns the bytes (0
 * when the kernel refuses, as for locked memory before Linux 5.18). */
size_t culet_os_purge(uintptr_t start, size_t bytes);

/* Makes the range read as zeros. The pages that lie wholly inside go back to the kernel, unless it refuses. */
void culet_os_clear(uintptr_t start, size_t bytes);

/* A range of whole kernel pages. */
struct culet_os_range {
    uintptr_t start;
    size_t bytes;
    bool purged; /* the kernel has taken it back */
};

/* Returns the pages of `count` ranges to the kernel; they read as zeros afterwards. Sets `purged` of those that it has
 * taken. One call where the kernel can do that (Linux 6.15): per range it costs a third of a call of its own, because
 * the processors forget the old pages once. */
void culet_os_purge_ranges(struct culet_os_range *range, unsigned count);

/* Resizes a mapping in place; false, and nothing has changed, when the kernel cannot. */
bool culet_os_resize(void *start, size_t old_bytes, size_t new_bytes);

/* Moves the pages of a mapping over the mapping at `target`, of new_bytes. False when the kernel refuses: the source
 * has not changed then, but the target may be a hole. */
bool culet_os_move(void *start, size_t old_bytes, void *target, size_t new_bytes);

/* Reserves inaccessible address space; NULL when the kernel refuses. */
void *culet_os_reserve(size_t bytes);

/* Makes a reserved range accessible; false when the kernel refuses. */
bool culet_os_open(void *start, size_t bytes);

/* Discards the contents of a range and makes it inaccessible; false when the kernel refuses. */
bool culet_os_close(void *start, size_t bytes);

/* Makes one kernel page inside of a mapping inaccessible, where possible without splitting the mapping (Linux 6.13), and
 * accessible again; it reads as zeros then. False when the kernel refuses. */
bool culet_os_guard(void *page);
bool culet_os_unguard(void *page);

/* Random bytes: the kernel's, without waiting for it to have any. */
void culet_os_random(void *to, size_t bytes);

/* Forked children find zeros in the range. False where the kernel cannot do this (before Linux 4.14). */
bool culet_os_wipe_on_fork(void *start, size_t bytes);

/* Sleeps while *word == value, for at most so many microseconds, or without a bound for 0; wakes so many sleepers. */
void culet_os_wait(_Atomic uint32_t *word, uint32_t value, unsigned microseconds);
void culet_os_wake(_Atomic uint32_t *word, int most);

/* A full memory barrier on every running thread of the process; culet_os_barrier_setup registers for it. False where
 * the kernel has none (before Linux 4.14, or in a sandbox). */
bool culet_os_barrier_setup(void);
bool culet_os_barrier(void);

/* Sleeps for so many microseconds; 0 yields the processor. */
void culet_os_pause(unsigned microseconds);

#ifdef CULET_TEST
/* Called before each mapping; true refuses it. */
extern bool (*culet_os_refuse)(void);
/* Called before each purge; true refuses it. */
extern bool (*culet_os_refuse_purge)(void);
#endif
