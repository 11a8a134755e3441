/* memory.h - reads the memory of the process.
 *
 * Only pages that are in memory are read (pages.h): reading another one would map the zero page or swap a page in,
 * and so change what is measured. The last bytes read are kept in a window until the process runs.
 *
 * process_vm_readv pins the pages that it reads. Before an anonymous page shared with a forked relative is pinned,
 * the kernel gives the process its own copy (FAULT_FLAG_UNSHARE, Linux 5.19), so reading would end the sharing. Such
 * pages are read from /proc/PID/mem, which does not pin; all others by process_vm_readv, which is faster. */
#pragma once

#include "process/pages.h"

/* Bytes read at once: large against the cost of a call (as copying 12 KB), and at most half of a second-level cache. */
#define CULET_MEMORY_WINDOW 262144u

struct culet_memory {
    pid_t pid;
    struct culet_pages *pages;
    size_t page_bytes;
    int descriptor;      /* of /proc/PID/mem; -1: it could not be opened */
    bool pinning;        /* process_vm_readv is allowed */
    uint64_t start, end; /* addresses of the window */
    /* With room after the end, so that a word there can be loaded. */
    _Alignas(64) unsigned char window[CULET_MEMORY_WINDOW + 64];
};

/* Prepares; reads nothing. */
void culet_memory_open(struct culet_memory *memory, pid_t pid, struct culet_pages *pages, size_t page_bytes);

/* Tries to read one present page of the mappings. Returns 0 or an errno. */
int culet_memory_try(struct culet_memory *memory, const struct culet_maps *maps);

/* Forgets the window: the process has run. */
void culet_memory_forget(struct culet_memory *memory);

/* `bytes` (at most half of the window) at this address, valid until the next call. NULL if they are not all in
 * memory. */
const void *culet_memory_at(struct culet_memory *memory, uint64_t address, size_t bytes);

/* The memory from this address on, as far as it is in the window or can be read at once: at least `least` bytes;
 * *length gets their number. NULL if `least` bytes are not in memory. Does not read beyond `limit`. */
const unsigned char *culet_memory_span(struct culet_memory *memory, uint64_t address, size_t least, uint64_t limit,
                                       size_t *length);

/* Copies any number of bytes. Pages that are not in memory are zeros in the copy. Returns false if some of them are
 * in swap, or refused. */
bool culet_memory_copy(struct culet_memory *memory, uint64_t address, void *to, size_t bytes);

/* Reads the word (8 bytes) at this address; false if it is not in memory. */
bool culet_memory_word(struct culet_memory *memory, uint64_t address, uint64_t *word);

/* Pieces per call: the kernel's limit (IOV_MAX). */
#define CULET_MEMORY_BATCH 1024u

/* Copies `bytes` from each of `count` addresses into `to`, one piece after the other. got[i]: piece i was read. A
 * piece that is not wholly in memory is not read, and is zeros. */
void culet_memory_copy_batch(struct culet_memory *memory, const uint64_t *addresses, size_t count, size_t bytes,
                             void *to, bool *got);
