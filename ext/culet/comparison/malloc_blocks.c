#include "comparison/malloc_blocks.h"

#include <string.h>

#include "reader/layouts/glibc_chunk.h"

/* larger blocks hold other things than call caches, such as the interpreter's state */
#define MAX_CALL_CACHE_BYTES 4096

/* a block's number and addresses */
struct block {
    uint32_t number;
    uint64_t first, past;
};

static struct block block_of(struct comparison_blocks *blocks, uint32_t number)
{
    struct block block = {.number = number, .first = 0, .past = 0};

    if (number != COMPARISON_NONE)
        culet_comparison_block_bounds(blocks, number, &block.first, &block.past);
    return block;
}

static int is_used(const struct comparison_blocks *blocks, uint32_t number)
{
    return number != COMPARISON_NONE && blocks->states[number] == CULET_BLOCK_USED;
}

/* Whether the relative has a used block with the same addresses. */
static int is_kept(const struct comparison_malloc *malloc, const struct block *block)
{
    struct comparison_blocks *blocks = &malloc->there->blocks;
    struct block other = block_of(blocks, culet_comparison_block_at(blocks, block->first));

    return is_used(blocks, other.number) && other.first == block->first && other.past == block->past;
}

void culet_comparison_count_blocks(const struct comparison_malloc *malloc, uint64_t from, uint64_t to,
                                   struct comparison_writes *writes)
{
    struct comparison_blocks *blocks = &malloc->here->blocks;
    uint32_t number = culet_comparison_block_after(blocks, from);

    for (; number != COMPARISON_NONE && number < blocks->count; number++) {
        struct block block = block_of(blocks, number);
        uint64_t first = block.first > from ? block.first : from, past = block.past < to ? block.past : to;
        if (block.first >= to)
            return;
        if (!is_used(blocks, number) || first >= past)
            continue;
        culet_comparison_add_bytes(writes, malloc->owners->owners[number],
                                   malloc->owners->classes == NULL ? 0 : malloc->owners->classes[number],
                                   is_kept(malloc, &block) ? KIND_MALLOC : KIND_MALLOC_MADE, past - first);
    }
}

/* A class keeps its call caches in blocks with addresses of method entries and caches. */
static int holds_call_caches(const struct comparison_malloc *malloc, const struct block *block)
{
    uint64_t first = block->first + malloc->here->blocks.header_bytes;
    const char *bytes;

    if (block->past < first || block->past - first > MAX_CALL_CACHE_BYTES)
        return 0;
    bytes = culet_comparison_peek(&malloc->here->memory, first, block->past);
    if (bytes == NULL)
        return 0;
    for (uint64_t at = 0; at + COMPARISON_WORD <= block->past - first; at += COMPARISON_WORD) {
        uint64_t word;
        memcpy(&word, bytes + at, sizeof(word));
        if (culet_comparison_is_code(malloc->owners, malloc->here, word))
            return 1;
    }
    return 0;
}

static unsigned category_in_use(const struct comparison_malloc *malloc, const struct block *block)
{
    if (!is_kept(malloc, block))
        return WRITES_REUSE;
    switch (malloc->owners->owners[block->number]) {
    case OWNER_CODE:
        return WRITES_INLINE_CACHES;
    case OWNER_HEAP_PAGE:
        return WRITES_COLLECTOR;
    /* The path from a class is long, so blocks without a known owner count as classes here. */
    case RUBY_SLOT_CLASS:
    case RUBY_SLOT_MODULE:
    case RUBY_SLOT_ICLASS:
    case OWNER_UNKNOWN:
        return holds_call_caches(malloc, block) ? WRITES_INLINE_CACHES : WRITES_DATA;
    default:
        return WRITES_DATA;
    }
}

/* Whether the word belongs to the allocator: a header, or a link in a free block. */
static int is_link(struct comparison_blocks *blocks, uint32_t number, uint64_t address)
{
    struct block block = block_of(blocks, number);
    uint64_t links;

    if (blocks->header_bytes == 0 || number == COMPARISON_NONE)
        return 0;
    if (address - block.first < blocks->header_bytes)
        return 1;
    if (is_used(blocks, number))
        return 0;
    links =
        block.past - block.first >= GLIBC_CHUNK_LARGE_BYTES ? GLIBC_CHUNK_LARGE_LINKS_BYTES : GLIBC_CHUNK_LINKS_BYTES;
    return address - block.first < blocks->header_bytes + links;
}

/* In glibc the first word of a block belongs to the previous block, if that is used. */
static unsigned category_of_tail(const struct comparison_malloc *malloc, const struct block *block)
{
    struct comparison_blocks *blocks = &malloc->here->blocks;
    struct block before = block_of(blocks, block->number > 0 ? block->number - 1 : COMPARISON_NONE);

    return is_used(blocks, before.number) && before.past == block->first ? category_in_use(malloc, &before)
                                                                         : WRITES_METADATA;
}

/* The category of a word. Sets *past to the end of the range with the same category. */
static unsigned category(const struct comparison_malloc *malloc, uint64_t address, uint64_t *past)
{
    struct comparison_blocks *blocks = &malloc->here->blocks;
    struct block block = block_of(blocks, culet_comparison_block_at(blocks, address));

    *past = address + COMPARISON_WORD;
    if (block.number == COMPARISON_NONE)
        return WRITES_METADATA;
    if (address - block.first + COMPARISON_WORD < blocks->header_bytes)
        return category_of_tail(malloc, &block);
    if (address - block.first < blocks->header_bytes)
        return WRITES_METADATA;
    if (blocks->states[block.number] == CULET_BLOCK_OVERHEAD || is_used(blocks, block.number)) {
        *past = block.past;
        return is_used(blocks, block.number) ? category_in_use(malloc, &block) : WRITES_METADATA;
    }
    /* The allocator's word in either process; else a block that was allocated and freed since the fork. */
    if (is_link(blocks, block.number, address))
        return WRITES_METADATA;
    blocks = &malloc->there->blocks;
    return is_link(blocks, culet_comparison_block_at(blocks, address), address) ? WRITES_METADATA : WRITES_REUSE;
}

unsigned culet_comparison_malloc_mask(const struct comparison_malloc *malloc, const uint64_t *words, size_t count)
{
    unsigned mask = 0;

    for (size_t at = 0; at < count;) {
        uint64_t past;
        mask |= category(malloc, words[at], &past);
        do
            at++;
        while (at < count && words[at] < past);
    }
    return mask;
}
