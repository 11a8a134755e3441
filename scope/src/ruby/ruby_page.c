#include "ruby/ruby_page.h"

#include "base/bytes.h"
#include "layouts/ruby_slot.h"

/* Slots have 40 bytes in Ruby 3.1, and up to 16 times as many from 3.2 on. Development versions use powers of two. */
#define LEAST_SLOT 32u
#define MOST_SLOT 4096u

/* The pointer back comes soon after the numbers. */
#define FIRST_WORD 8u

/* Whether the slots fill the page, except perhaps for one slot. */
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

/* From 3.4 on empty pages are kept for slots of any size: their descriptions have the page and no numbers. */
static bool is_empty(uint64_t start, const unsigned char *description, uint32_t at)
{
    return culet_word_at(description + at) == start && !culet_word_at(description + at + 8) &&
           !culet_half_at(description) && !culet_half_at(description + 2) && start % CULET_RUBY_LONG == 0;
}

/* Descriptions may lie next to their page, so other words may point into the page's range too, but not to where a
 * first slot can be. */
bool culet_ruby_page_recognize(uint64_t start, const unsigned char *description, struct culet_ruby_page *page)
{
    for (uint32_t at = FIRST_WORD; at + 16 <= CULET_RUBY_DESCRIPTION; at += 8) {
        uint64_t word = culet_word_at(description + at);
        if (is_empty(start, description, at)) {
            *page = (struct culet_ruby_page){.start = start, .bytes = CULET_RUBY_LONG, .layout = at};
            return true;
        }
        if (word == start) /* the page itself; the first slot follows */
            word = culet_word_at(description + at + 8);
        if (word - start >= CULET_RUBY_LONG)
            continue;
        *page = (struct culet_ruby_page){.start = start,
                                         .slot_bytes = culet_half_at(description),
                                         .slots = culet_half_at(description + 2),
                                         .first = (uint32_t)(word - start),
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
        if (ruby_slot_type(culet_word_at(memory + (at - from))) != RUBY_SLOT_NONE) {
            bitmap[slot / 8] = (unsigned char)(bitmap[slot / 8] | 1u << slot % 8);
            live++;
        }
    }
    return live;
}
