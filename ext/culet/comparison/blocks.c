#include <ruby.h>

#include "comparison/blocks.h"

#include "reader/src/base/search.h"

/* average number of blocks per entry of the index */
#define BLOCKS_PER_ENTRY 4
#define MAX_NUMBER_BYTES 10

uint64_t culet_comparison_numbers(const unsigned char *payload, size_t bytes)
{
    uint64_t count = 0;

    for (size_t at = 0; at < bytes; at++)
        count += payload[at] < 0x80;
    return count;
}

/* Reads a number (LEB128). Returns the address after it; NULL if it is truncated or too long. */
static const unsigned char *number(const unsigned char *at, const unsigned char *end, uint64_t *value)
{
    *value = 0;
    for (unsigned index = 0; index < MAX_NUMBER_BYTES && at < end; index++) {
        *value |= (uint64_t)(*at & 0x7f) << (7 * index);
        if (*at++ < 0x80)
            return at;
    }
    return NULL;
}

int culet_comparison_blocks_reserve(struct comparison_blocks *blocks, uint64_t count)
{
    if (count >= COMPARISON_NONE - blocks->count)
        return 0;
    blocks->capacity = blocks->count + (uint32_t)count;
    REALLOC_N(blocks->starts, uint32_t, blocks->capacity);
    REALLOC_N(blocks->states, unsigned char, blocks->capacity);
    return 1;
}

static struct comparison_run *new_run(struct comparison_blocks *blocks, uint64_t first)
{
    struct comparison_run *run;

    if (blocks->run_count == blocks->run_capacity) {
        size_t capacity = blocks->run_capacity == 0 ? 64 : 2 * blocks->run_capacity;
        REALLOC_N(blocks->runs, struct comparison_run, capacity);
        blocks->run_capacity = capacity;
    }
    run = &blocks->runs[blocks->run_count++];
    *run = (struct comparison_run){.first = first, .past = first, .at = blocks->count};
    return run;
}

/* Entry n of the index: how many of the run's blocks start before step n; with one more entry at the end. */
static void make_index(struct comparison_blocks *blocks, struct comparison_run *run)
{
    uint64_t units = (run->past - run->first) / CULET_BLOCK_UNIT;
    size_t begin = run == blocks->runs ? 0
                                       : (size_t)run[-1].index +
                                             ((run[-1].past - run[-1].first) / CULET_BLOCK_UNIT >> run[-1].shift) + 2;
    size_t entries;
    uint32_t block = 0;

    while (units >> run->shift > run->count / BLOCKS_PER_ENTRY)
        run->shift++;
    entries = (size_t)(units >> run->shift) + 2;
    if (begin + entries > blocks->index_capacity) {
        size_t capacity = 2 * blocks->index_capacity > begin + entries ? 2 * blocks->index_capacity : begin + entries;
        REALLOC_N(blocks->index, uint32_t, capacity);
        blocks->index_capacity = capacity;
    }
    run->index = (uint32_t)begin;
    for (size_t entry = 0; entry < entries; entry++) {
        while (block < run->count && (uint64_t)blocks->starts[run->at + block] < (uint64_t)entry << run->shift)
            block++;
        blocks->index[begin + entry] = block;
    }
}

int culet_comparison_blocks_add(struct comparison_blocks *blocks, uint64_t first, uint64_t past,
                                const unsigned char *payload, size_t bytes)
{
    const unsigned char *at = payload, *end = payload + bytes;
    struct comparison_run *run;
    uint64_t value;

    at = number(at, end, &value);
    if (at == NULL || value > past - first)
        return 0;
    run = new_run(blocks, first + value);
    while (at < end) {
        at = number(at, end, &value);
        if (at == NULL || (value >> CULET_BLOCK_STATE_BITS) > (past - run->past) / CULET_BLOCK_UNIT ||
            blocks->count == blocks->capacity)
            return 0;
        if ((run->past - run->first) / CULET_BLOCK_UNIT > UINT32_MAX) {
            make_index(blocks, run);
            run = new_run(blocks, run->past);
        }
        blocks->starts[blocks->count] = (uint32_t)((run->past - run->first) / CULET_BLOCK_UNIT);
        blocks->states[blocks->count++] = value & ((1 << CULET_BLOCK_STATE_BITS) - 1);
        run->past += (value >> CULET_BLOCK_STATE_BITS) * CULET_BLOCK_UNIT;
        run->count++;
    }
    make_index(blocks, run);
    return 1;
}

/* The first run that ends after an address. */
static size_t run_after(const struct comparison_blocks *blocks, uint64_t address)
{
    if (blocks->run_count > 0 && blocks->runs[blocks->last_run].past > address &&
        (blocks->last_run == 0 || blocks->runs[blocks->last_run - 1].past <= address))
        return blocks->last_run;
    return CULET_FIRST_WHERE(i, 0, blocks->run_count, blocks->runs[i].past > address);
}

uint32_t culet_comparison_block_at(struct comparison_blocks *blocks, uint64_t address)
{
    size_t found = run_after(blocks, address);
    const struct comparison_run *run = &blocks->runs[found];
    uint64_t offset;
    const uint32_t *entry;
    size_t second;

    if (found == blocks->run_count || run->first > address)
        return COMPARISON_NONE;
    blocks->last_run = found;
    offset = (address - run->first) / CULET_BLOCK_UNIT;
    entry = &blocks->index[run->index + (offset >> run->shift)];
    /* The last block that starts at or before the offset; the run's first one starts at 0. */
    second = entry[0] > 0 ? entry[0] : 1;
    return run->at + (uint32_t)CULET_FIRST_WHERE(i, second, entry[1], blocks->starts[run->at + i] > offset) - 1;
}

uint32_t culet_comparison_block_after(struct comparison_blocks *blocks, uint64_t address)
{
    size_t found = run_after(blocks, address);

    if (found == blocks->run_count)
        return COMPARISON_NONE;
    return blocks->runs[found].first > address ? blocks->runs[found].at : culet_comparison_block_at(blocks, address);
}

void culet_comparison_block_bounds(struct comparison_blocks *blocks, uint32_t block, uint64_t *first, uint64_t *past)
{
    const struct comparison_run *run = &blocks->runs[blocks->last_run];

    if (block < run->at || block - run->at >= run->count) {
        blocks->last_run = CULET_FIRST_WHERE(i, 1, blocks->run_count, blocks->runs[i].at > block) - 1;
        run = &blocks->runs[blocks->last_run];
    }
    *first = run->first + (uint64_t)blocks->starts[block] * CULET_BLOCK_UNIT;
    *past = block - run->at + 1 < run->count ? run->first + (uint64_t)blocks->starts[block + 1] * CULET_BLOCK_UNIT
                                             : run->past;
}

uint32_t culet_comparison_block_known_by(struct comparison_blocks *blocks, uint64_t address)
{
    uint64_t first, past;
    uint32_t block;

    if (address % CULET_BLOCK_UNIT != 0 || blocks->run_count == 0 ||
        address < blocks->runs[0].first + blocks->header_bytes)
        return COMPARISON_NONE;
    if (address >= blocks->runs[blocks->run_count - 1].past + blocks->header_bytes)
        return COMPARISON_NONE;
    block = culet_comparison_block_at(blocks, address - blocks->header_bytes);
    if (block == COMPARISON_NONE || blocks->states[block] != CULET_BLOCK_USED)
        return COMPARISON_NONE;
    culet_comparison_block_bounds(blocks, block, &first, &past);
    return first + blocks->header_bytes == address ? block : COMPARISON_NONE;
}

void culet_comparison_blocks_free(struct comparison_blocks *blocks)
{
    xfree(blocks->starts);
    xfree(blocks->states);
    xfree(blocks->runs);
    xfree(blocks->index);
}
