/* ruby_page.h - one page of Ruby's heap, recognised by its contents, and which of its slots are live.
 *
 * A page begins with a pointer to its description (struct heap_page, in the malloc heap), which begins with five
 * 16-bit numbers, the bytes of a slot and the number of slots among them, and holds at a constant offset a pointer
 * back: to the first slot (Ruby 3.1 to 3.3), or to the page and then to the first slot (from 3.4 on). No version is
 * asked: the two pointers and the numbers have to fit each other. A slot whose first word & 0x1f is 0 (T_NONE) is free.
 * Seen in: gc.c of CRuby 3.1 to 3.3, gc/default/default.c of 3.4 and later. */
#ifndef CULET_RUBY_PAGE_H
#define CULET_RUBY_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes at the start of a description that are looked at. */
#define CULET_RUBY_DESCRIPTION 128u

/* Pages have one of two lengths: 16 KiB up to Ruby 3.1, 64 KiB later. They start at a multiple of it. */
#define CULET_RUBY_SHORT 16384u
#define CULET_RUBY_LONG 65536u

struct culet_ruby_page {
    uint64_t start;
    uint32_t bytes; /* CULET_RUBY_SHORT or _LONG */
    uint32_t slot_bytes; /* 0 of an empty page, which has no slots */
    uint32_t slots;
    uint32_t first;  /* offset of the first slot */
    uint32_t layout; /* where in the description the pointer back was: pages of one process agree in it */
};

/* Whether `description` (CULET_RUBY_DESCRIPTION bytes) describes a page at `start`; fills *page then. */
bool culet_ruby_page_recognise(uint64_t start, const unsigned char *description, struct culet_ruby_page *page);

/* Bytes of the bitmap of a page's slots. */
static inline size_t culet_ruby_page_bitmap(const struct culet_ruby_page *page)
{
    return (page->slots + 7) / 8;
}

/* Sets the bits of live slots. `memory`: the page from offset `from` to offset `to`; only slots that begin there are
 * looked at. Returns how many of them are live. */
uint32_t culet_ruby_page_live(const struct culet_ruby_page *page, const unsigned char *memory, uint32_t from,
                              uint32_t to, unsigned char *bitmap);

#endif
