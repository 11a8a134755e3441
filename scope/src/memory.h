/* memory.h - reads the memory of the process.
 *
 * Only pages that are in memory are read (page.h is asked first): reading another would map the zero page, or bring
 * one back from swap, and change what is measured. What was read last is kept in a window, until the process runs.
 *
 * process_vm_readv pins the pages it reads, and before an anonymous page is pinned that a fork shares, the kernel gives
 * the process a copy of its own (FAULT_FLAG_UNSHARE, Linux 5.19): reading would end the sharing that is to be measured.
 * Such pages are read from /proc/PID/mem, which does not pin; all others by the call, which is faster. */
#ifndef CULET_MEMORY_H
#define CULET_MEMORY_H

#include "page.h"

/* Read at once. A call costs as much as copying 12 KB, so a window should be many times that; and half of a
 * processor's second cache at most. */
#define CULET_MEMORY_WINDOW 262144u

struct culet_memory {
    pid_t pid;
    struct culet_pages *pages;
    size_t page_bytes;
    int descriptor;   /* of /proc/PID/mem; -1 where it could not be opened */
    bool pinning;     /* process_vm_readv is allowed */
    uint64_t start;   /* address of the window */
    uint64_t end;
    uint64_t refused; /* present pages that the kernel would not read */
    /* A few bytes more, so that a word behind its end can be looked at, if not used. */
    _Alignas(64) unsigned char window[CULET_MEMORY_WINDOW + 64];
};

/* Prepares; reads nothing. */
void culet_memory_open(struct culet_memory *memory, pid_t pid, struct culet_pages *pages, size_t page_bytes);

/* Whether memory of the process may be read at all: tries one present page of `mapping`s. Returns 0 or an errno. */
int culet_memory_try(struct culet_memory *memory, const struct culet_maps *maps);

/* Whether a page in this state may be read by process_vm_readv. */
bool culet_memory_pins(const struct culet_memory *memory, uint8_t state);

/* Forgets the window: the process has run since. */
void culet_memory_forget(struct culet_memory *memory);

/* `bytes` (at most half of the window) at this address, valid until the next call. NULL when any of them is not in memory. */
const void *culet_memory_at(struct culet_memory *memory, uint64_t address, size_t bytes);

/* As much of the memory from this address on as is in the window, or can be brought there in one go: at least
 * `least` bytes, *length tells how many. NULL when `least` bytes are not in memory. Reads towards `limit` only. */
const unsigned char *culet_memory_span(struct culet_memory *memory, uint64_t address, size_t least, uint64_t limit,
                                       size_t *length);

/* Copies `bytes`, however many; pages that are not in memory are zeroes in the copy (what they hold, unless they are
 * swapped out). Returns false when some were swapped out, or refused. */
bool culet_memory_copy(struct culet_memory *memory, uint64_t address, void *to, size_t bytes);

/* The word (8 bytes) at this address into *word; false when it is not in memory. */
bool culet_memory_word(struct culet_memory *memory, uint64_t address, uint64_t *word);

#endif
