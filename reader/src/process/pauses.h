/* pauses.h - how long each pause of the process was, and how much of it the reader worked. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct culet_pauses {
    uint64_t *lengths; /* of all pauses, in order, in nanoseconds */
    size_t count, room;
    uint64_t sum_ns;
    uint64_t longest_ns;
    uint64_t cpu_ns;      /* processor time of the reader in pauses */
    uint64_t stopping_ns; /* part of sum_ns, until all threads had stopped */
};

/* Records a pause of `length_ns`: `stopping_ns` until all threads had stopped, `cpu_ns` of the reader's processor
 * time. */
void culet_pauses_add(struct culet_pauses *pauses, uint64_t length_ns, uint64_t stopping_ns, uint64_t cpu_ns);

/* Writes the JSON record "reading". */
void culet_pauses_write(const struct culet_pauses *pauses);
