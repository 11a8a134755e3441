/* strings/top_groups.h - keeps the groups with the largest gains. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define STRINGS_GROUP_SITES 4
#define STRINGS_GROUP_PARTS 6

/* Equal strings, or a string and its suffixes. */
struct culet_string_group {
    uint64_t gain; /* bytes that could be saved */
    uint64_t held; /* bytes of all slots and buffers */
    uint64_t count;
    uint64_t offset;                     /* record of the string that stays */
    uint64_t sites[STRINGS_GROUP_SITES]; /* allocation sites of the copies; 0: not known, or no more */
    uint64_t site_counts[STRINGS_GROUP_SITES];
    uint64_t parts[STRINGS_GROUP_PARTS]; /* offsets of the suffixes' records, longest first */
    uint32_t part_count;
    uint32_t flags;  /* of all strings, combined by | */
    uint32_t frozen; /* number of frozen strings */
    uint32_t interned;
};

struct culet_top_groups {
    struct culet_string_group *groups; /* room for twice the capacity: when it is full, the smaller half goes */
    size_t count, capacity;
    uint64_t least; /* a group with less gain is not kept */
};

/* Allocates room. capacity: number of groups kept. Returns 0 without memory. */
int culet_top_groups_prepare(struct culet_top_groups *top, size_t capacity);

/* Adds a group if its gain may be among the largest. */
void culet_top_groups_add(struct culet_top_groups *top, const struct culet_string_group *group);

/* Sorts by gain, largest first, and drops all but the largest. */
void culet_top_groups_sort(struct culet_top_groups *top);
