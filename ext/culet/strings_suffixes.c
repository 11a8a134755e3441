/*
 * A string can lie in the buffer of another that ends with it: CRuby shares a substring that goes to its parent's end. What
 * goes away then is its own buffer, or what its slot has beyond the smallest. Strings that fit into the smallest slot have
 * nothing to give; nor have interned ones, to which Ruby gives a buffer of their own, and those that share one already.
 */
#include "strings_groups.h"

#include <string.h>

#define KEY_BYTES 8

typedef struct culet_string_entry entry;

static size_t
content_end(const struct culet_strings_analysis *analysis, const entry *one, const unsigned char **end)
{
  const struct culet_string_record *record = culet_strings_file_record((struct culet_strings_file *)&analysis->file, one->offset);

  *end = culet_strings_content(record) + record->content_bytes;
  return record->content_bytes;
}

static uint64_t
last_word(const unsigned char *end)
{
  uint64_t word = 0;

  /* The last byte is the first to compare. */
  for (int i = 1; i <= KEY_BYTES; i++) word = word << 8 | end[-i];
  return word;
}

static int
by_last_word(const entry *one, const entry *other, void *unused)
{
  (void)unused;
  return (one->key > other->key) - (one->key < other->key);
}

/* How many bytes the two have in common, from their ends. */
static size_t
common(const unsigned char *one, const unsigned char *other, size_t length)
{
  size_t same = 0;

  while (length - same >= KEY_BYTES && memcmp(one - same - KEY_BYTES, other - same - KEY_BYTES, KEY_BYTES) == 0) same += KEY_BYTES;
  while (same < length && one[-(ptrdiff_t)same - 1] == other[-(ptrdiff_t)same - 1]) same++;
  return same;
}

/* The order of contents read backwards; of two of which one is the other's end, the shorter comes first. */
static int
by_content_backwards(const entry *one, const entry *other, void *data)
{
  struct culet_strings_analysis *analysis = data;
  const unsigned char *end, *other_end;
  size_t length = content_end(analysis, one, &end), other_length = content_end(analysis, other, &other_end);
  size_t least = length < other_length ? length : other_length, same = common(end, other_end, least);

  culet_strings_file_visited(&analysis->file);
  if (same < least) return end[-(ptrdiff_t)same - 1] < other_end[-(ptrdiff_t)same - 1] ? -1 : 1;
  if (length != other_length) return length < other_length ? -1 : 1;
  return (one->offset > other->offset) - (one->offset < other->offset);
}

/* Whether the first is the end of the second, or its equal. */
static int
ends_with(struct culet_strings_analysis *analysis, const entry *end_of, const entry *whole)
{
  const unsigned char *end, *whole_end;
  size_t length = content_end(analysis, end_of, &end);

  if (length > content_end(analysis, whole, &whole_end)) return 0;
  return common(end, whole_end, length) == length;
}

/* What would go away if it lay in another's buffer. */
static uint64_t
gain_of(const struct culet_strings_analysis *analysis, const entry *one)
{
  uint64_t held = culet_string_held(one);

  if (one->flags & (STRING_INTERNED | STRING_ROOT | STRING_SHARED | STRING_NOFREE)) return 0;
  return held > analysis->smallest_slot ? held - analysis->smallest_slot : 0;
}

/* An unfrozen string that is to be shared with gets a root: one more slot. */
static uint64_t
cost_of_root(const struct culet_strings_analysis *analysis, const entry *whole)
{
  return whole->flags & (STRING_FROZEN | STRING_ROOT | STRING_SHARED) ? 0 : analysis->smallest_slot;
}

/* A chain: each from first on is the end of the next, and all are ends of the last. Returns whether there was memory. */
static int
add_chain(struct culet_strings_analysis *analysis, const entry *first, const entry *last)
{
  struct culet_string_group group = {.offset = last->offset, .flags = (uint32_t)last->flags, .held = culet_string_held(last)};
  uint64_t gain = 0, cost = cost_of_root(analysis, last);

  for (const entry *one = last; one-- > first;) {
    if (gain_of(analysis, one) == 0) continue;
    gain += gain_of(analysis, one);
    if (group.part_count < STRINGS_GROUP_PARTS) group.parts[group.part_count++] = one->offset;
    group.held += culet_string_held(one);
    group.count++;
  }
  if (gain <= cost) return 1;
  group.gain = gain - cost;
  for (const entry *one = last; one-- > first;) {
    uint64_t part = gain_of(analysis, one), paid = cost < part ? cost : part; /* the root is paid by the longest */
    cost -= paid;
    if (part > 0 && !culet_string_gain_at_site(analysis, one->site, part - paid)) return 0;
  }
  group.frozen = (last->flags & STRING_FROZEN) != 0;
  analysis->suffix_groups++;
  analysis->suffix_strings += group.count;
  analysis->suffix_gain += group.gain;
  culet_strings_best_add(&analysis->suffixes, &group);
  return 1;
}

/* Entries whose last words are the same. Returns whether there was memory. */
static int
find_in_run(struct culet_strings_analysis *analysis, entry *run, size_t count)
{
  culet_strings_sort(run, count, by_content_backwards, analysis);
  for (size_t first = 0, last; first < count; first = last + 1) {
    for (last = first; last + 1 < count && ends_with(analysis, &run[last], &run[last + 1]); last++) continue;
    if (last > first && !add_chain(analysis, &run[first], &run[last])) return 0;
  }
  return 1;
}

/* Leaves those that can have a part in sharing, each with its last word as its key. */
static void
choose(struct culet_strings_analysis *analysis)
{
  uint64_t fits = analysis->smallest_slot - analysis->header - 1;
  entry *left = analysis->entries;

  for (entry *one = analysis->entries; one < analysis->entries + analysis->entry_count; one++) {
    const unsigned char *end;
    if (one->length <= fits || (one->flags & STRING_DIGEST)) continue;
    *left = *one;
    content_end(analysis, one, &end);
    left->key = last_word(end);
    culet_strings_file_visited(&analysis->file);
    left++;
  }
  analysis->entry_count = (size_t)(left - analysis->entries);
}

static int
by_offset(const entry *one, const entry *other, void *unused)
{
  (void)unused;
  return (one->offset > other->offset) - (one->offset < other->offset);
}

int
culet_strings_find_suffixes(struct culet_strings_analysis *analysis)
{
  size_t count;

  /* In the file's order, so that it is read through once. */
  culet_strings_sort(analysis->entries, analysis->entry_count, by_offset, NULL);
  choose(analysis);
  count = analysis->entry_count;
  culet_strings_sort(analysis->entries, count, by_last_word, NULL);
  for (size_t first = 0, past; first < count; first = past) {
    for (past = first + 1; past < count && analysis->entries[past].key == analysis->entries[first].key; past++) continue;
    if (past > first + 1 && !find_in_run(analysis, &analysis->entries[first], past - first)) return 0;
  }
  return 1;
}
