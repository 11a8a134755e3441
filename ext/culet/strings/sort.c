#include "strings/sort.h"

#define SMALL 16

typedef struct culet_string_entry entry;

struct sorting {
    culet_string_order *order;
    void *data;
};

static int less(const struct sorting *sorting, const entry *one, const entry *other)
{
    return sorting->order(one, other, sorting->data) < 0;
}

static void swap(entry *one, entry *other)
{
    entry kept = *one;

    *one = *other;
    *other = kept;
}

static void insertion_sort(const struct sorting *sorting, entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        entry moved = entries[i];
        size_t at = i;
        for (; at > 0 && less(sorting, &moved, &entries[at - 1]); at--)
            entries[at] = entries[at - 1];
        entries[at] = moved;
    }
}

static void sift_down(const struct sorting *sorting, entry *entries, size_t at, size_t count)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && less(sorting, &entries[child], &entries[child + 1]))
            child++;
        if (!less(sorting, &entries[at], &entries[child]))
            return;
        swap(&entries[at], &entries[child]);
    }
}

static void heap_sort(const struct sorting *sorting, entry *entries, size_t count)
{
    for (size_t at = count / 2; at-- > 0;)
        sift_down(sorting, entries, at, count);
    for (size_t last = count; last-- > 1;) {
        swap(&entries[0], &entries[last]);
        sift_down(sorting, entries, 0, last);
    }
}

/* Moves the median of three to the front. */
static void choose_pivot(const struct sorting *sorting, entry *entries, size_t count)
{
    entry *a = &entries[1], *b = &entries[count / 2], *c = &entries[count - 1];
    entry *median = less(sorting, a, b) ? (less(sorting, b, c)   ? b
                                           : less(sorting, a, c) ? c
                                                                 : a)
                                        : (less(sorting, a, c)   ? a
                                           : less(sorting, b, c) ? c
                                                                 : b);

    swap(&entries[0], median);
}

/* Hoare's partition around the first entry. Returns its new position; equal entries go to both sides. */
static size_t partition(const struct sorting *sorting, entry *entries, size_t count)
{
    size_t low = 1, high = count - 1;

    for (;;) {
        while (low <= high && less(sorting, &entries[low], &entries[0]))
            low++;
        while (high >= low && less(sorting, &entries[0], &entries[high]))
            high--;
        if (low >= high)
            break;
        swap(&entries[low++], &entries[high--]);
    }
    swap(&entries[0], &entries[high]);
    return high;
}

static void quick_sort(const struct sorting *sorting, entry *entries, size_t count, int depth)
{
    while (count > SMALL) {
        if (depth-- == 0) {
            heap_sort(sorting, entries, count);
            return;
        }
        choose_pivot(sorting, entries, count);
        size_t pivot = partition(sorting, entries, count);
        if (pivot < count - pivot - 1) {
            quick_sort(sorting, entries, pivot, depth);
            entries += pivot + 1;
            count -= pivot + 1;
        } else {
            quick_sort(sorting, entries + pivot + 1, count - pivot - 1, depth);
            count = pivot;
        }
    }
    insertion_sort(sorting, entries, count);
}

void culet_strings_sort(struct culet_string_entry *entries, size_t count, culet_string_order *order, void *data)
{
    struct sorting sorting = {order, data};
    int depth = 0;

    for (size_t n = count; n > 0; n /= 2)
        depth += 2;
    quick_sort(&sorting, entries, count, depth);
}
