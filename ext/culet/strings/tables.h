/* strings/tables.h - what the analysis counts by number: gains by allocation site, and strings by the root they share. */
#ifndef CULET_STRINGS_TABLES_H
#define CULET_STRINGS_TABLES_H

#include <stddef.h>
#include <stdint.h>

struct culet_string_site {
  uint64_t site; /* 0: a free place of the table */
  uint64_t strings, held, copies, gain;
};

/* A hash table with open addressing. All zeroes: empty. */
struct culet_string_sites {
  struct culet_string_site *places;
  size_t count, capacity;
  uint64_t mix; /* random: numbers come from another process, and none of them is to find its place taken on purpose */
};

/* The place of a site, made if there is none; NULL: there is no memory. */
struct culet_string_site *culet_string_sites_at(struct culet_string_sites *sites, uint64_t site);

void culet_string_sites_free(struct culet_string_sites *sites);

struct culet_string_root {
  uint64_t address;
  uint64_t count;  /* strings shared with it */
  uint64_t offset; /* of its record; UINT64_MAX: there is none */
};

/* All zeroes: empty. */
struct culet_string_roots {
  struct culet_string_root *list;
  size_t count, capacity;
};

/* Notes that a string is shared with that one. Returns whether there was memory for it. */
int culet_string_roots_add(struct culet_string_roots *roots, uint64_t address);

/* After all were noted: one element for each, in order of addresses. */
void culet_string_roots_merge(struct culet_string_roots *roots);

/* After that: the one at an address, or NULL. */
struct culet_string_root *culet_string_roots_find(const struct culet_string_roots *roots, uint64_t address);

void culet_string_roots_free(struct culet_string_roots *roots);

#endif
