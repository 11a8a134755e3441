/* Of duplicates one stays: the interned one; else one that shares a root's buffer, because it holds only a slot; else
 * the one that holds least. Roots are buffers that other strings use, so that beside a string one of them stays, too:
 * the strings of all others could use its buffer. */
#include "strings/duplicates.h"

#include "strings/suffixes.h"

typedef struct culet_string_entry entry;

static int by_key(const entry *one, const entry *other, void *unused)
{
    if (one->key != other->key)
        return one->key < other->key ? -1 : 1;
    return (one->offset > other->offset) - (one->offset < other->offset);
}

static int is_root(const entry *one)
{
    return (one->flags & STRING_ROOT) != 0 && (one->flags & STRING_INTERNED) == 0;
}

/* Whether the first string is rather the one that stays. */
static int stays_before(const entry *one, const entry *other)
{
    int interned = (one->flags & STRING_INTERNED) != 0;

    if (is_root(one) != is_root(other))
        return is_root(other);
    if (interned != ((other->flags & STRING_INTERNED) != 0))
        return interned;
    return culet_string_held(one) < culet_string_held(other);
}

static void add_site(struct culet_string_group *group, uint64_t site)
{
    if (site == 0)
        return;
    for (size_t i = 0; i < STRINGS_GROUP_SITES; i++) {
        if (group->sites[i] != site && group->sites[i] != 0)
            continue;
        group->sites[i] = site;
        group->site_counts[i]++;
        return;
    }
}

/* Counts one string that could go. Returns 0 without memory. */
static int add_copy(struct culet_strings_analysis *analysis, struct culet_string_group *group, const entry *one)
{
    group->count++;
    group->gain += culet_string_held(one);
    add_site(group, one->site);
    return culet_string_table_gain(&analysis->sites, one->site, culet_string_held(one));
}

/* Adds the group of duplicates from first to past, of which `kept` stays. Returns 0 without memory. */
static int add_group(struct culet_strings_analysis *analysis, const entry *first, const entry *past, const entry *kept)
{
    struct culet_string_group group = {.offset = kept->offset, .count = 1};
    const entry *root = is_root(kept) ? kept : NULL;

    for (const entry *one = first; one < past; one++) {
        group.held += culet_string_held(one);
        group.flags |= (uint32_t)one->flags;
        group.frozen += (one->flags & STRING_FROZEN) != 0;
        group.interned += (one->flags & STRING_INTERNED) != 0;
        if (is_root(one) && root == NULL)
            root = one;
        else if (one != kept && one != root && !add_copy(analysis, &group, one))
            return 0;
    }
    if (group.count < 2)
        return 1;
    analysis->duplicate_groups++;
    analysis->duplicate_copies += group.count - 1;
    analysis->duplicate_gain += group.gain;
    culet_top_groups_add(&analysis->duplicates, &group);
    return 1;
}

int culet_strings_group_duplicates(struct culet_strings_analysis *analysis)
{
    entry *entries = analysis->entries + analysis->lasting, *past = analysis->entries + analysis->entry_count;

    culet_strings_sort(entries, (size_t)(past - entries), by_key, NULL);
    for (entry *first = entries, *end; first < past; first = end) {
        entry *kept = first;
        for (end = first + 1; end < past && end->key == first->key; end++)
            if (stays_before(end, kept))
                kept = end;
        if (end > first + 1 && !add_group(analysis, first, end, kept))
            return 0;
        if (culet_string_may_share_end(analysis, kept))
            analysis->entries[analysis->lasting++] = *kept;
    }
    analysis->entry_count = analysis->lasting;
    return 1;
}
