/* maps.h - the mappings of the process, from /proc/PID/smaps. */
#ifndef CULET_MAPS_H
#define CULET_MAPS_H

#include "buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct culet_mapping {
    uint32_t id; /* its index */
    uint64_t start, end;
    char perms[5]; /* "rw-p" */
    uint64_t offset, inode;
    char *path; /* as the kernel tells it: "", "[heap]", "[anon:NAME]", "/usr/lib/...", "... (deleted)" */
    uint64_t rss, pss, shared_clean, shared_dirty, private_clean, private_dirty, swap; /* bytes */
    const char *use; /* of format.h's list; NULL until somebody knows: "other" */
    char *label;     /* owned; NULL: none */
    struct culet_buffer pages; /* the runs of record 'P', once they were read (page.h) */
};

struct culet_maps {
    struct culet_mapping *all; /* by address */
    size_t count, room;
    uint64_t rss, pss, shared, private_dirty, swap; /* bytes, of all mappings */
    bool sized;                                     /* the bytes were read (else maps alone could be had) */
};

/* Reads the mappings with their sizes (`sized`), or only where they are, which is quick. Returns false, errno set,
 * when the file cannot be read. */
bool culet_maps_read(struct culet_maps *maps, pid_t pid, bool sized);

/* The mapping that has this address, or NULL. */
struct culet_mapping *culet_maps_at(const struct culet_maps *maps, uint64_t address);

/* The end of the mappings side by side from the one with this address on, as far as all can be a heap, if that one can;
 * else of that mapping alone. 0 where nothing is mapped. */
uint64_t culet_maps_end(const struct culet_maps *maps, uint64_t address);

/* Private, anonymous, readable and writable: where a heap can be. */
bool culet_mapping_is_heap_like(const struct culet_mapping *mapping);

/* Says what a mapping is used for; `use` is a constant of format.h's list. The first to say so is right, unless it
 * was NULL. `label` is printf's, or NULL. */
void culet_mapping_name(struct culet_mapping *mapping, const char *use, const char *label, ...)
    __attribute__((format(printf, 3, 4)));

void culet_maps_free(struct culet_maps *maps);

#endif
