/* strings/sort.h - sorts entries in place: qsort(3) of glibc allocates as much memory again. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The entry of a string in the analysis, smaller than the smallest slot. */
struct culet_string_entry {
    uint64_t key;
    uint64_t offset : 40; /* of its record in the file */
    uint64_t flags : 16;
    uint64_t held_high : 8;
    uint64_t site;
    uint32_t length;   /* UINT32_MAX: that many or more */
    uint32_t held_low; /* with held_high: bytes of slot and buffer */
};

#define STRINGS_MAX_FILE ((uint64_t)1 << 40)
#define STRINGS_MAX_HELD (((uint64_t)1 << 40) - 1)

/* A comparison as for qsort(3). */
typedef int culet_string_order(const struct culet_string_entry *one, const struct culet_string_entry *other,
                               void *data);

/* Quicksort, with heapsort as fallback: O(n log n) for any order. */
void culet_strings_sort(struct culet_string_entry *entries, size_t count, culet_string_order *order, void *data);
