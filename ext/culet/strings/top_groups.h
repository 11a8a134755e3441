/* strings/top_groups.h - the groups with the largest gains, of any number of groups. */
#ifndef CULET_STRINGS_TOP_GROUPS_H
#define CULET_STRINGS_TOP_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#define STRINGS_GROUP_SITES 4
#define STRINGS_GROUP_PARTS 6

/* Strings of one content, or strings that are the ends of one. */
struct culet_string_group {
  uint64_t gain;   /* bytes that would go away */
  uint64_t held;   /* bytes of slots and buffers, all of them together */
  uint64_t count;
  uint64_t offset; /* of the record of the one that stays */
  uint64_t sites[STRINGS_GROUP_SITES];       /* that allocated what would go away; 0: not known, or no more */
  uint64_t site_counts[STRINGS_GROUP_SITES];
  uint64_t parts[STRINGS_GROUP_PARTS]; /* of suffixes: records' offsets, the longest first */
  uint32_t part_count;
  uint32_t flags; /* of all, or'ed */
  uint32_t frozen; /* how many are */
  uint32_t interned;
};

struct culet_top_groups {
  struct culet_string_group *groups; /* a heap, the smallest gain first */
  size_t count, capacity;
};

/* Keeps a group if it is among the best so far. room: how many are kept. */
void culet_top_groups_add(struct culet_top_groups *top, const struct culet_string_group *group);

/* Whether a group of that gain would be kept. */
int culet_top_groups_wants(const struct culet_top_groups *top, uint64_t gain);

/* Largest gain first. It is no heap any more. */
void culet_top_groups_sort(struct culet_top_groups *top);

#endif
