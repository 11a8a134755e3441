#include "strings/top_groups.h"

#include <stdlib.h>

typedef struct culet_string_group group;

static void swap(group *one, group *other)
{
    group kept = *one;

    *one = *other;
    *other = kept;
}

static void rise(group *groups, size_t at)
{
    for (; at > 0 && groups[at].gain < groups[(at - 1) / 2].gain; at = (at - 1) / 2)
        swap(&groups[at], &groups[(at - 1) / 2]);
}

static void sink(group *groups, size_t count)
{
    for (size_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && groups[child + 1].gain < groups[child].gain)
            child++;
        if (groups[at].gain <= groups[child].gain)
            return;
        swap(&groups[at], &groups[child]);
    }
}

/* Whether a group with this gain would be kept. */
static int wants(const struct culet_top_groups *top, uint64_t gain)
{
    if (top->capacity == 0)
        return 0;
    return top->count < top->capacity || gain > top->groups[0].gain;
}

void culet_top_groups_add(struct culet_top_groups *top, const struct culet_string_group *added)
{
    if (!wants(top, added->gain))
        return;
    if (top->count < top->capacity) {
        top->groups[top->count] = *added;
        rise(top->groups, top->count++);
    } else {
        top->groups[0] = *added;
        sink(top->groups, top->count);
    }
}

static int larger_first(const void *one, const void *other)
{
    const group *a = one, *b = other;

    if (a->gain != b->gain)
        return a->gain < b->gain ? 1 : -1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

void culet_top_groups_sort(struct culet_top_groups *top)
{
    qsort(top->groups, top->count, sizeof(*top->groups), larger_first);
}
