/* pauses.h - how long the process was paused, each time, and what of that the reader worked. */
#ifndef CULET_PAUSES_H
#define CULET_PAUSES_H

#include <stddef.h>
#include <stdint.h>

struct culet_pauses {
    uint32_t *lengths; /* of all pauses so far, in microseconds, in their order */
    size_t count, room;
    uint64_t sum_ns;
    uint64_t longest_ns;
    uint64_t cpu_ns;     /* of the reader, while the process was paused */
    uint64_t stopping_ns; /* of sum_ns: until all threads had stopped */
};

/* Nanoseconds of processor time that this program has had. */
uint64_t culet_pauses_cpu(void);

/* A pause is over: it took `length_ns`, of which `stopping_ns` went by before all had stopped; `cpu_ns` of processor
 * time in it were the reader's. */
void culet_pauses_add(struct culet_pauses *pauses, uint64_t length_ns, uint64_t stopping_ns, uint64_t cpu_ns);

/* Writes the record "reading". */
void culet_pauses_tell(const struct culet_pauses *pauses);

#endif
