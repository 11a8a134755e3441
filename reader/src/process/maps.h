/* maps.h - the mappings of the process, from /proc/PID/smaps. */
#pragma once

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct culet_mapping {
    uint32_t id; /* its index */
    uint64_t start, end;
    char perms[5]; /* "rw-p" */
    uint64_t offset, inode;
    char *path; /* from the kernel: "", "[heap]", "[anon:NAME]", "/usr/lib/...", "... (deleted)" */
    uint64_t rss, pss, shared_clean, shared_dirty, private_clean, private_dirty, swap; /* bytes */
    const char *use;           /* one of format.h's list; NULL: unknown so far */
    char *label;               /* owned; NULL: none */
    struct culet_buffer pages; /* the runs of the pages record, once read */
};

struct culet_maps {
    struct culet_mapping *all; /* by address */
    size_t count, room;
    uint64_t rss, pss, shared, private_dirty, swap; /* bytes, of all mappings */
    bool sized;                                     /* the sizes were read */
};

/* Reads the mappings with their sizes (`sized`), or without, which is fast. Returns false, errno set, on failure. */
bool culet_maps_read(struct culet_maps *maps, pid_t pid, bool sized);

/* The first `mapping` for which the expression `found` is true, or NULL. */
#define CULET_MAPPING_WHERE(maps, mapping, found)                                                                      \
    ({                                                                                                                 \
        struct culet_mapping *mapping = NULL;                                                                          \
        size_t at_ = 0;                                                                                                \
        while (at_ < (maps)->count && (mapping = &(maps)->all[at_], !(found)))                                         \
            at_++;                                                                                                     \
        at_ < (maps)->count ? mapping : NULL;                                                                          \
    })

/* The mapping that contains this address, or NULL. */
struct culet_mapping *culet_maps_at(const struct culet_maps *maps, uint64_t address);

/* Whether a heap can be there: private, anonymous, readable and writable. */
bool culet_mapping_is_heap_like(const struct culet_mapping *mapping);

/* Sets the use of a mapping, a constant of format.h's list, and its label (printf's arguments, or NULL). Only the first
 * call counts. */
void culet_mapping_name(struct culet_mapping *mapping, const char *use, const char *label, ...)
    __attribute__((format(printf, 3, 4)));

/* Names every mapping that contains a part of from..to; `label` may be NULL. */
void culet_maps_name_range(const struct culet_maps *maps, uint64_t from, uint64_t to, const char *use,
                           const char *label);

void culet_maps_free(struct culet_maps *maps);
