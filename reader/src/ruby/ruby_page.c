#include "ruby/ruby_page.h"

#include "base/bytes.h"
#include "reader/layouts/ruby_slot.h"

/* Slots have 40 bytes in Ruby 3.1, up to 16 times as many from 3.2 on, and 32 to 1,024 bytes in 4.1. */
#define LEAST_SLOT 32u
#define MOST_SLOT 4096u

/* Where the numbers of a description can stand: at its start, or within this many bytes behind a reciprocal. */
#define NUMBERS_END 64u
#define RECIPROCAL_SHIFT 48u

/* Offsets of an empty page's zeros in the description that begins with the free region: its first slot, its numbers. */
#define EMPTY_FIRST 8u
#define EMPTY_NUMBERS 24u

/* Offset of a word that is not in the description. */
#define ABSENT CULET_RUBY_DESCRIPTION

/* 2^48 / slot_bytes, rounded up: the factor by which CRuby divides the offset of a slot by its size. */
static uint64_t reciprocal(uint32_t slot_bytes)
{
    return ((UINT64_C(1) << RECIPROCAL_SHIFT) + slot_bytes - 1) / slot_bytes;
}

/* The offset of the slot size, which is followed by the number of slots: behind its own reciprocal if there is such a
 * word, else 0. */
static uint32_t numbers_offset(const unsigned char *description)
{
    for (uint32_t at = 8; at < NUMBERS_END; at += 8) {
        uint32_t slot_bytes = culet_half_at(description + at);
        if (slot_bytes >= LEAST_SLOT && culet_word_at(description + at - 8) == reciprocal(slot_bytes))
            return at;
    }
    return 0;
}

/* Whether the slots fill the page; without a reciprocal one slot may be missing. */
static bool fills(const struct culet_ruby_page *page, bool exactly)
{
    uint32_t most = (page->bytes - page->first) / page->slot_bytes;

    return page->first < page->bytes && (page->slots == most || (!exactly && page->slots + 1 == most));
}

static bool numbers_fit(struct culet_ruby_page *page, bool exactly)
{
    if (page->slot_bytes < LEAST_SLOT || page->slot_bytes > MOST_SLOT || page->slot_bytes % 8 || page->first % 8 ||
        page->first < 8 || page->first >= page->slot_bytes + 64 || !page->slots)
        return false;
    page->bytes = CULET_RUBY_SHORT;
    if (fills(page, exactly))
        return true;
    page->bytes = CULET_RUBY_LONG;
    return page->start % CULET_RUBY_LONG == 0 && fills(page, exactly);
}

/* The offset of the first word that is the address of the page, or ABSENT. */
static uint32_t page_offset(uint64_t start, const unsigned char *description)
{
    uint32_t at = 8;

    while (at < CULET_RUBY_DESCRIPTION && culet_word_at(description + at) != start)
        at += 8;
    return at;
}

static bool has_no_numbers(const unsigned char *description, uint32_t at)
{
    return !culet_half_at(description + at) && !culet_half_at(description + at + 2);
}

/* From 3.4 on empty pages are kept for slots of any size: their descriptions have the page at offset `at`, and neither
 * numbers nor a first slot. */
static bool is_empty(uint64_t start, const unsigned char *description, uint32_t at)
{
    if (at == ABSENT || start % CULET_RUBY_LONG || !has_no_numbers(description, 0))
        return false;
    if (at + 16 <= CULET_RUBY_DESCRIPTION && !culet_word_at(description + at + 8))
        return true;
    return at > EMPTY_NUMBERS && !culet_word_at(description) && !culet_word_at(description + EMPTY_FIRST) &&
           has_no_numbers(description, EMPTY_NUMBERS);
}

/* Which word is the first slot follows from the numbers: other words may point into the page as well, to its first free
 * slot, or because descriptions lie next to it, but from there on the slots do not fill the page. */
bool culet_ruby_page_recognize(uint64_t start, const unsigned char *description, struct culet_ruby_page *page)
{
    uint32_t numbers = numbers_offset(description), body = page_offset(start, description);

    for (uint32_t at = 8; at < CULET_RUBY_DESCRIPTION; at += 8) {
        uint64_t first = culet_word_at(description + at) - start;
        if (first >= CULET_RUBY_LONG)
            continue;
        *page = (struct culet_ruby_page){.start = start,
                                         .slot_bytes = culet_half_at(description + numbers),
                                         .slots = culet_half_at(description + numbers + 2),
                                         .first = (uint32_t)first,
                                         .layout = body == ABSENT ? at : body};
        if (numbers_fit(page, numbers > 0))
            return true;
    }
    *page = (struct culet_ruby_page){.start = start, .bytes = CULET_RUBY_LONG, .layout = body};
    return is_empty(start, description, body);
}

/* The record: the next arena, start, bytes, the first free page, two 32-bit counts of free pages. The lowest bit of a
 * link says that the kernel has the memory. A description, which malloc has allocated, lies in no arena. */
bool culet_ruby_page_recognize_free(uint64_t start, uint64_t link, const unsigned char *arena,
                                    struct culet_ruby_page *page)
{
    uint64_t from = culet_word_at(arena + 8), bytes = culet_word_at(arena + 16), free = culet_word_at(arena + 32);
    uint64_t next = link & ~UINT64_C(1), pages = bytes / CULET_RUBY_LONG;

    *page = (struct culet_ruby_page){.start = start, .bytes = CULET_RUBY_LONG};
    return culet_ruby_page_may_be_free(start, link) && from % CULET_RUBY_LONG == 0 && bytes % CULET_RUBY_LONG == 0 &&
           start - from < bytes && (!next || next - from < bytes) && (uint32_t)free - 1 < pages && free >> 32 <= pages;
}

static void count_slot(struct culet_ruby_slots *slots, uint64_t flags)
{
    slots->live++;
    slots->promoted += (flags & RUBY_SLOT_PROMOTED) != 0;
    slots->both += (flags & RUBY_SLOT_AGE_MASK) == RUBY_SLOT_AGE_MASK;
    slots->upper += ruby_slot_has_upper_age(flags);
}

void culet_ruby_page_live(const struct culet_ruby_page *page, const unsigned char *memory, uint32_t from, uint32_t to,
                          unsigned char *bitmap, struct culet_ruby_slots *slots)
{
    if (!page->slots)
        return;
    uint32_t slot = from <= page->first ? 0 : (from - page->first + page->slot_bytes - 1) / page->slot_bytes;

    for (; slot < page->slots; slot++) {
        uint32_t at = page->first + slot * page->slot_bytes;
        if (at + 8 > to)
            break;
        uint64_t flags = culet_word_at(memory + (at - from));
        if (ruby_slot_type(flags) == RUBY_SLOT_NONE)
            continue;
        bitmap[slot / 8] = (unsigned char)(bitmap[slot / 8] | 1u << slot % 8);
        count_slot(slots, flags);
    }
}
