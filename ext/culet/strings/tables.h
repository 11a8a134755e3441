/* strings/tables.h - tables of the analysis: gains by allocation site, strings by the root whose buffer they share. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct culet_string_site {
    uint64_t site; /* 0: a free entry */
    uint64_t strings, held, copies, gain;
};

/* A hash table with open addressing. All zeros: empty. */
struct culet_string_sites {
    struct culet_string_site *places;
    size_t count, capacity;
    uint64_t mix; /* random, against keys chosen to collide: they come from another process */
};

/* The entry of a site, created if missing; NULL without memory. */
struct culet_string_site *culet_string_sites_at(struct culet_string_sites *sites, uint64_t site);

/* Adds a gain to its allocation site; 0: it has none. Returns 0 without memory. */
int culet_string_sites_gain(struct culet_string_sites *sites, uint64_t site, uint64_t gain);

void culet_string_sites_free(struct culet_string_sites *sites);

struct culet_string_root {
    uint64_t address;
    uint64_t count;  /* strings that share its buffer */
    uint64_t offset; /* of its record; UINT64_MAX: none */
};

/* All zeros: empty. */
struct culet_string_roots {
    struct culet_string_root *list;
    size_t count, capacity;
};

/* Notes that a string shares a root's buffer. Returns 0 without memory. */
int culet_string_roots_add(struct culet_string_roots *roots, uint64_t address);

/* Merges equal roots and sorts them by address, once all are added. */
void culet_string_roots_merge(struct culet_string_roots *roots);

/* The root at an address, or NULL; after merging. */
struct culet_string_root *culet_string_roots_find(const struct culet_string_roots *roots, uint64_t address);

void culet_string_roots_free(struct culet_string_roots *roots);
