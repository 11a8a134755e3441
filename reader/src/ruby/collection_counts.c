#include "ruby/collection_counts.h"

#include "base/bytes.h"

/* Entries of all slot sizes are neighbours. */
#define MOST_DISTANCE 16384u

/* Words from the number of minor collections to the sum: up to Ruby 4.0, and in 4.1. */
static const size_t sum_words[] = {7, 13};

/* More collections than any process makes. */
#define MOST_COUNT (UINT64_C(1) << 40)

uint64_t culet_ruby_state(const struct culet_ruby_described *pages, size_t count, uint32_t offset)
{
    uint64_t least = UINT64_MAX, most = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t word = culet_word_at(pages[i].description + offset);
        if (!word || word % 8)
            return 0;
        for (size_t j = 0; j < i; j++)
            if ((pages[j].slot_bytes == pages[i].slot_bytes) != (culet_word_at(pages[j].description + offset) == word))
                return 0;
        least = word < least ? word : least;
        most = word > most ? word : most;
    }
    return count && most - least <= MOST_DISTANCE ? least : 0;
}

static bool has_sum(const unsigned char *state, size_t at, uint64_t sum)
{
    for (size_t i = 0; i < sizeof sum_words / sizeof *sum_words; i++) {
        size_t word = at + sum_words[i] * 8;
        if (word < CULET_RUBY_STATE && culet_word_at(state + word) == sum)
            return true;
    }
    return false;
}

struct culet_ruby_collections culet_ruby_collections_in(const unsigned char *state)
{
    struct culet_ruby_collections found = {0};

    for (size_t at = 0; at + 8 < CULET_RUBY_STATE; at += 8) {
        uint64_t minor = culet_word_at(state + at), major = culet_word_at(state + at + 8);
        if (!minor || !major || minor > MOST_COUNT || major > MOST_COUNT || !has_sum(state, at, minor + major))
            continue;
        if (found.known)
            return (struct culet_ruby_collections){0};
        found = (struct culet_ruby_collections){.known = true, .minor = minor, .major = major};
    }
    return found;
}
