/* residency.h - which part of a block is resident, by /proc/self/pagemap. mincore would say it too, but systemd's
 * @system-service does not have it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct culet_residency {
    int file; /* -1: the kernel refuses it */
    uint64_t page_bytes;
};

/* Without /proc, or in a process that may not be traced, nothing is known. */
void culet_residency_open(struct culet_residency *residency);
void culet_residency_close(struct culet_residency *residency);

/* Sets the resident bytes among `bytes` from `address` on, which may be unmapped by now. False: not known. */
bool culet_residency_count(const struct culet_residency *residency, const void *address, uint64_t bytes,
                           uint64_t *resident);

/* Which of 64 parts of part_bytes each (a power of two) are resident, from `address` on, a multiple of it: a bit each. 0 where
 * nothing is known. */
uint64_t culet_residency_mask(const struct culet_residency *residency, const void *address, uint64_t part_bytes);
