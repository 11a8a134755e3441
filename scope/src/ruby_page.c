#include "ruby_page.h"

#include "../../layouts/ruby_slot.h"

#include <string.h>

/* Slots are of 40 bytes in Ruby 3.1; from 3.2 on up to sixteen times that. Powers of two are tried in development. */
#define LEAST_SLOT 32u
#define MOST_SLOT 4096u

/* The pointer back is behind the numbers, and not far. */
#define FIRST_WORD 8u

static uint64_t word_at(const unsigned char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

static uint32_t half_at(const unsigned char *bytes)
{
    uint16_t half;

    memcpy(&half, bytes, sizeof half);
    return half;
}

/* A page is full of slots: no more of them would fit, but maybe one. */
static bool fills(const struct culet_ruby_page *page)
{
    uint32_t most = (page->bytes - page->first) / page->slot_bytes;

    return page->first < page->bytes && (page->slots == most || page->slots + 1 == most);
}

static bool numbers_fit(struct culet_ruby_page *page)
{
    if (page->slot_bytes < LEAST_SLOT || page->slot_bytes > MOST_SLOT || page->slot_bytes % 8 || page->first % 8 ||
        page->first < 8 || page->first >= page->slot_bytes + 64 || !page->slots)
        return false;
    page->bytes = CULET_RUBY_SHORT;
    if (fills(page))
        return true;
    page->bytes = CULET_RUBY_LONG;
    return page->start % CULET_RUBY_LONG == 0 && fills(page);
}

/* From 3.4 on pages without an object are kept for any size of slots: their descriptions hold the page and no numbers. */
static bool is_empty(uint64_t start, const unsigned char *description, uint32_t at)
{
    return word_at(description + at) == start && !word_at(description + at + 8) && !half_at(description) &&
           !half_at(description + 2) && start % CULET_RUBY_LONG == 0;
}

/* Other words may lie in the page's range too, if the allocator has put descriptions next to it: not where a first slot
 * can be. */
bool culet_ruby_page_recognise(uint64_t start, const unsigned char *description, struct culet_ruby_page *page)
{
    for (uint32_t at = FIRST_WORD; at + 16 <= CULET_RUBY_DESCRIPTION; at += 8) {
        uint64_t word = word_at(description + at);
        if (is_empty(start, description, at)) {
            *page = (struct culet_ruby_page){.start = start, .bytes = CULET_RUBY_LONG, .layout = at};
            return true;
        }
        if (word == start) /* the page itself; the first slot comes next */
            word = word_at(description + at + 8);
        if (word - start >= CULET_RUBY_LONG)
            continue;
        *page = (struct culet_ruby_page){.start = start, .slot_bytes = half_at(description),
                                         .slots = half_at(description + 2), .first = (uint32_t)(word - start),
                                         .layout = at};
        if (numbers_fit(page))
            return true;
    }
    return false;
}

uint32_t culet_ruby_page_live(const struct culet_ruby_page *page, const unsigned char *memory, uint32_t from,
                              uint32_t to, unsigned char *bitmap)
{
    if (!page->slots)
        return 0;
    uint32_t slot = from <= page->first ? 0 : (from - page->first + page->slot_bytes - 1) / page->slot_bytes;
    uint32_t live = 0;

    for (; slot < page->slots; slot++) {
        uint32_t at = page->first + slot * page->slot_bytes;
        if (at + 8 > to)
            break;
        if (ruby_slot_type(word_at(memory + (at - from))) != RUBY_SLOT_NONE) {
            bitmap[slot / 8] = (unsigned char)(bitmap[slot / 8] | 1u << slot % 8);
            live++;
        }
    }
    return live;
}
