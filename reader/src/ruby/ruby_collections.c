#include "ruby/ruby_heap.h"

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
