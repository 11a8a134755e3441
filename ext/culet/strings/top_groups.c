#include "strings/top_groups.h"

#include <stdlib.h>

int culet_top_groups_prepare(struct culet_top_groups *top, size_t capacity)
{
    *top = (struct culet_top_groups){calloc(2 * capacity + 1, sizeof(*top->groups)), 0, capacity, 0};
    return top->groups != NULL;
}

void culet_top_groups_add(struct culet_top_groups *top, const struct culet_string_group *added)
{
    if (top->capacity == 0 || added->gain < top->least)
        return;
    if (top->count == 2 * top->capacity)
        culet_top_groups_sort(top);
    top->groups[top->count++] = *added;
}

static int larger_first(const void *one, const void *other)
{
    const struct culet_string_group *a = one, *b = other;

    if (a->gain != b->gain)
        return a->gain < b->gain ? 1 : -1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

void culet_top_groups_sort(struct culet_top_groups *top)
{
    qsort(top->groups, top->count, sizeof(*top->groups), larger_first);
    if (top->count <= top->capacity)
        return;
    top->count = top->capacity;
    top->least = top->groups[top->count - 1].gain;
}
