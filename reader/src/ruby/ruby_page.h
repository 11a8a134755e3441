/* ruby_page.h - recognizes a page of Ruby's heap by its contents, and finds its live slots.
 *
 * A page begins with a pointer to its description (struct heap_page, allocated by malloc). The description has five
 * 16-bit numbers, the first two of which are the bytes of a slot and the number of slots, a pointer to the first slot,
 * and from 3.4 on one to the page. The numbers stand at its start (Ruby 3.1 to 4.0), or behind the reciprocal of the
 * slot size (4.1: free region, first slot, reciprocal, numbers). No version is asked for: pointers and numbers have to
 * fit each other. From 4.1 on, pages are parts of arenas, and a free one begins with a link to the next free one of its
 * arena and a pointer to the arena's record. Sources: gc.c of CRuby 3.1 to 3.3, gc/default/default.c from 3.4 on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a description that are read. */
#define CULET_RUBY_DESCRIPTION 128u

/* Pages have 16 KiB up to Ruby 3.1, 64 KiB later, and are aligned to their length. */
#define CULET_RUBY_SHORT 16384u
#define CULET_RUBY_LONG 65536u

struct culet_ruby_page {
    uint64_t start;
    uint32_t bytes;      /* CULET_RUBY_SHORT or _LONG */
    uint32_t slot_bytes; /* 0: an empty page, which has no slots */
    uint32_t slots;
    uint32_t first;  /* offset of the first slot */
    uint32_t layout; /* offset in the description of the pointer to the page, or else to the first slot: the same for
                      * all pages of a process; 0: a free page of an arena, which has no description */
};

/* Whether `description` (CULET_RUBY_DESCRIPTION bytes) describes a page at `start`; fills in *page. */
bool culet_ruby_page_recognize(uint64_t start, const unsigned char *description, struct culet_ruby_page *page);

/* Whether a page that begins with `link` can be a free one of an arena. */
static inline bool culet_ruby_page_may_be_free(uint64_t start, uint64_t link)
{
    return start % CULET_RUBY_LONG == 0 && (link & ~UINT64_C(1)) % CULET_RUBY_LONG == 0;
}

/* Whether `arena` (CULET_RUBY_DESCRIPTION bytes) is the record of an arena with a free page at `start`, which begins
 * with `link`; fills in *page. */
bool culet_ruby_page_recognize_free(uint64_t start, uint64_t link, const unsigned char *arena,
                                    struct culet_ruby_page *page);

/* Bytes of the bitmap of a page's slots. */
static inline size_t culet_ruby_page_bitmap(const struct culet_ruby_page *page)
{
    return (page->slots + 7) / 8;
}

/* Counts of slots with an object, and of those with age bits (layouts/ruby_slot.h): the lower one, both, and the upper
 * one of other types than T_DATA. */
struct culet_ruby_slots {
    uint64_t live, promoted, both, upper;
};

/* Sets the bits of live slots that begin in the page's bytes from..to, which are in `memory`, and counts them. */
void culet_ruby_page_live(const struct culet_ruby_page *page, const unsigned char *memory, uint32_t from, uint32_t to,
                          unsigned char *bitmap, struct culet_ruby_slots *slots);
