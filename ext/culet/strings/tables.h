/* strings/tables.h - a table of the analysis: strings by allocation site, or by the root whose buffer they share. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct culet_string_counts {
    uint64_t key; /* a site, or a root's address; 0: a free entry */
    uint64_t strings, held, copies, gain;
    uint64_t record; /* of a root: offset of its record + 1; 0: it has none */
};

/* A hash table with open addressing. All zeros: empty. */
struct culet_string_table {
    struct culet_string_counts *places;
    size_t count, capacity;
    uint64_t mix; /* random, against keys chosen to collide: they come from another process */
};

/* The entry of a key, created if missing; NULL without memory. */
struct culet_string_counts *culet_string_table_at(struct culet_string_table *table, uint64_t key);

/* The entry of a key, or NULL. */
struct culet_string_counts *culet_string_table_find(const struct culet_string_table *table, uint64_t key);

/* Adds a gain to its allocation site; 0: it has none. Returns 0 without memory. */
int culet_string_table_gain(struct culet_string_table *sites, uint64_t site, uint64_t gain);

void culet_string_table_free(struct culet_string_table *table);
