/* collection_counts.h - how many collections the garbage collector has made.
 *
 * The descriptions of all pages with one slot size point to the same entry of an array in the collector's state
 * (rb_objspace_t). Behind that array stand the number of minor and of major collections, and, six words after the
 * second (twelve in 4.1), their sum. Sources: gc.c of CRuby 3.1 to 3.3, gc/default/default.c from 3.4 on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the collector's state that are read, from the first entry on. */
#define CULET_RUBY_STATE 8192u

struct culet_ruby_collections {
    bool known;
    uint64_t minor, major;
};

/* A page, as far as the search for the state asks: its slot size and the copy of its description. */
struct culet_ruby_described {
    uint32_t slot_bytes;
    const unsigned char *description;
};

/* The first entry by the word at `offset` of the descriptions; 0: these words are no such pointers. */
uint64_t culet_ruby_state(const struct culet_ruby_described *pages, size_t count, uint32_t offset);

/* Finds the counts in the state (CULET_RUBY_STATE bytes); not known where no place or more than one fits. */
struct culet_ruby_collections culet_ruby_collections_in(const unsigned char *state);
