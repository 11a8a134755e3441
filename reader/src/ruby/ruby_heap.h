/* ruby_heap.h - what is known of Ruby's heap, and the steps of its walker.
 *
 *   interpreter      whether the process runs Ruby
 *   ruby_page        recognizes one page by its contents
 *   ruby_find        finds all pages
 *   ruby_slots       which slots are live; makes the regions
 *   ruby_collections how many collections there were
 *   transient_heap   the transient heap of Ruby up to 3.2
 *   ruby_records     the records
 *   ruby_walker      runs them one after the other */
#pragma once

#include "process/memory.h"
#include "ruby/ruby_page.h"
#include "ruby/transient_heap.h"

struct culet_ruby_found_page {
    struct culet_ruby_page shape;
    struct culet_ruby_slots slots;
    unsigned char *bitmap; /* NULL until its slots were read */
};

/* Bytes of live slots, of free slots, and of the rest of a page. */
struct culet_ruby_bytes {
    uint64_t live, free, overhead;
};

/* Buffers for one batch of candidates. Each of its first two words may point to a description. */
struct culet_ruby_batch {
    uint64_t starts[CULET_MEMORY_BATCH], words[CULET_MEMORY_BATCH][2];
    uint64_t pointers[CULET_MEMORY_BATCH];
    size_t described[CULET_MEMORY_BATCH]; /* the candidate that has the pointer */
    unsigned char descriptions[CULET_MEMORY_BATCH][CULET_RUBY_DESCRIPTION];
    bool got[CULET_MEMORY_BATCH], got_description[CULET_MEMORY_BATCH];
};

struct culet_ruby_collections {
    bool known;
    uint64_t minor, major;
};

struct culet_ruby {
    char version[32]; /* "": unknown */
    char why[320];    /* why no pages were found; "": some were */
    struct culet_ruby_found_page *pages;
    size_t count, room;
    uint32_t page_bytes;
    struct culet_ruby_bytes all, resident;
    struct culet_transient transient;
    struct culet_ruby_collections collections;
    uint64_t swapped; /* kernel pages in swap */
    struct culet_ruby_batch batch;
};

/* Whether pages can be blocks of malloc's: where the kernel's pages are longer than Ruby's, Ruby allocates them by
 * malloc. */
bool culet_ruby_pages_in_malloc(const struct culet_reading *reading);

/* Finds the pages, in address order, and notes candidates for the transient heap. Paused at the start; yields. */
void culet_ruby_find_pages(struct culet_reading *reading, struct culet_ruby *ruby);

/* Walks all pages found, and drops those that cannot be a region. Paused at the start; yields. */
void culet_ruby_walk_pages(struct culet_reading *reading, struct culet_ruby *ruby);

/* Reads how many collections there were. Needs a pause. */
void culet_ruby_count_collections(struct culet_reading *reading, struct culet_ruby *ruby);

/* Bytes of the collector's state that are read, from the first entry on. */
#define CULET_RUBY_STATE 8192u

/* A page, as far as the search for the state asks: its slot size and the copy of its description. */
struct culet_ruby_described {
    uint32_t slot_bytes;
    const unsigned char *description;
};

/* The first entry by the word at `offset` of the descriptions; 0: these words are no such pointers. */
uint64_t culet_ruby_state(const struct culet_ruby_described *pages, size_t count, uint32_t offset);

/* Finds the counts in the state (CULET_RUBY_STATE bytes); not known where no place or more than one fits. */
struct culet_ruby_collections culet_ruby_collections_in(const unsigned char *state);

/* A culet_walker's `write`. */
void culet_ruby_write(struct culet_reading *reading, void *context);
