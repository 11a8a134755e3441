#include "ruby/ruby_heap.h"

#include "base/bytes.h"

/* The descriptions of all pages with one slot size point to the same entry of an array in the collector's state
 * (rb_objspace_t). Behind that array stand the number of minor and of major collections, and, six words after the
 * second (twelve in 4.1), their sum. Sources: gc.c of CRuby 3.1 to 3.3, gc/default/default.c from 3.4 on. */

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

/* ---- reading ---- */

/* Pages that are asked for their place in the collector's state. Fewer may agree by chance. */
#define MOST_PAGES 64u
#define LEAST_PAGES 8u

/* Copies the descriptions of pages with slots, spread over all. Returns how many. */
static size_t copy_descriptions(struct culet_reading *reading, struct culet_ruby *ruby,
                                struct culet_ruby_described *described)
{
    struct culet_ruby_batch *batch = &ruby->batch;
    size_t step = ruby->count / MOST_PAGES + 1, count = 0, kept = 0;

    for (size_t i = 0; i < ruby->count; i += step)
        if (ruby->pages[i].shape.slots) {
            described[count].slot_bytes = ruby->pages[i].shape.slot_bytes;
            batch->starts[count++] = ruby->pages[i].shape.start;
        }
    culet_memory_copy_batch(&reading->memory, batch->starts, count, sizeof *batch->pointers, batch->pointers,
                            batch->got);
    culet_memory_copy_batch(&reading->memory, batch->pointers, count, CULET_RUBY_DESCRIPTION, batch->descriptions,
                            batch->got_description);
    for (size_t i = 0; i < count; i++)
        if (batch->got[i] && batch->got_description[i])
            described[kept++] = (struct culet_ruby_described){described[i].slot_bytes, batch->descriptions[i]};
    return kept;
}

void culet_ruby_count_collections(struct culet_reading *reading, struct culet_ruby *ruby)
{
    struct culet_ruby_described described[MOST_PAGES];
    unsigned char state[CULET_RUBY_STATE];
    size_t count = copy_descriptions(reading, ruby, described);

    for (uint32_t at = 8; count >= LEAST_PAGES && at + 8 <= CULET_RUBY_DESCRIPTION; at += 8) {
        uint64_t start = culet_ruby_state(described, count, at);
        if (!start || !culet_maps_at(&reading->maps, start) ||
            !culet_memory_copy(&reading->memory, start, state, sizeof state))
            continue;
        struct culet_ruby_collections found = culet_ruby_collections_in(state);
        if (found.known) {
            ruby->collections = found;
            return;
        }
    }
}
