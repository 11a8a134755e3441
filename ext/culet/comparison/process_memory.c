#include <ruby.h>

#include "comparison/process_memory.h"

#include <string.h>

#include "common/io.h"
#include "reader/src/base/search.h"

/* The first extent that ends after an address; `extents` if there is none. */
static size_t extent_after(const struct comparison_memory *memory, uint64_t address)
{
    return CULET_FIRST_WHERE(i, 0, memory->extents, memory->present[i].past > address);
}

int culet_comparison_present(const struct comparison_memory *memory, uint64_t first, uint64_t past)
{
    for (size_t at = extent_after(memory, first); first < past; at++) {
        if (at == memory->extents || memory->present[at].first > first)
            return 0;
        first = memory->present[at].past;
    }
    return 1;
}

int culet_comparison_read(const struct comparison_memory *memory, uint64_t first, uint64_t past, char *bytes)
{
    uint64_t at = first;

    for (size_t next = extent_after(memory, first); next < memory->extents && memory->present[next].first < past;
         next++) {
        uint64_t from = memory->present[next].first > first ? memory->present[next].first : first;
        uint64_t to = memory->present[next].past < past ? memory->present[next].past : past;
        memset(bytes + (at - first), 0, from - at);
        if (culet_read_all_at(memory->fd, bytes + (from - first), to - from, (off_t)from) != to - from)
            return 0;
        at = to;
    }
    memset(bytes + (at - first), 0, past - at);
    return 1;
}

const char *culet_comparison_peek(struct comparison_memory *memory, uint64_t first, uint64_t past)
{
    uint64_t from = first - first % COMPARISON_PEEK_BYTES;

    if (memory->window == NULL)
        memory->window = xmalloc(COMPARISON_PEEK_BYTES);
    /* A range that reaches into the next window is read separately. */
    if (past - from > COMPARISON_PEEK_BYTES) {
        memory->window_held = 0;
        return culet_comparison_read(memory, first, past, memory->window) ? memory->window : NULL;
    }
    if (!memory->window_held || memory->window_from != from) {
        memory->window_held = culet_comparison_read(memory, from, from + COMPARISON_PEEK_BYTES, memory->window);
        memory->window_from = from;
    }
    return memory->window_held ? memory->window + (first - from) : NULL;
}
