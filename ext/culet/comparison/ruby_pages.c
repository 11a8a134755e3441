#include "comparison/ruby_pages.h"

/* A slot in both processes, in words. */
struct slot {
    const uint64_t *here, *there;
    uint64_t words;
};

static struct slot slot_at(const struct comparison_ruby *ruby, uint64_t index)
{
    uint64_t words = ruby->page->slot_bytes / COMPARISON_WORD,
             at = ruby->page->first_slot / COMPARISON_WORD + index * words;

    return (struct slot){.here = ruby->here + at, .there = ruby->there + at, .words = words};
}

static int rest_differs(const struct slot *slot, uint64_t from)
{
    for (uint64_t word = from; word < slot->words; word++)
        if (slot->here[word] != slot->there[word])
            return 1;
    return 0;
}

/* Zero words of the process are ignored: an object need not use its whole slot. */
static int all_differs(const struct slot *slot)
{
    for (uint64_t word = 2; word < slot->words; word++)
        if (slot->here[word] == slot->there[word] && slot->here[word] != 0)
            return 0;
    return rest_differs(slot, 2);
}

/* An object counts as the same if it has the same type and class and is not younger, unless the relative's object had
 * survived no collection and nothing of it is left. If only the class differs, it is the object's singleton class. */
static int is_same(const struct comparison_ruby *ruby, const struct slot *slot)
{
    uint64_t here = slot->here[0], there = slot->there[0];

    if (!ruby_slot_is_live(there) || ((here ^ there) & RUBY_SLOT_TYPE_MASK) != 0)
        return 0;
    if ((there & ruby->old_mask) > (here & ruby->old_mask))
        return 0;
    if ((here & RUBY_SLOT_TYPE_MASK) == RUBY_SLOT_IMEMO)
        return ruby_slot_imemo_kind(here) == ruby_slot_imemo_kind(there);
    if (slot->here[1] != slot->there[1])
        return !rest_differs(slot, 2);
    return (there & ruby->old_mask) != 0 || !all_differs(slot);
}

static enum comparison_kind kind_of(const struct comparison_ruby *ruby, const struct slot *slot)
{
    if (!is_same(ruby, slot))
        return KIND_MADE;
    return (slot->there[0] & ruby->old_mask) == ruby->old_mask ? KIND_OLD : KIND_YOUNG;
}

void culet_comparison_count_objects(const struct comparison_ruby *ruby, uint64_t from, uint64_t to,
                                    struct comparison_writes *writes)
{
    const struct comparison_heap_page *page = ruby->page;
    uint64_t first = page->address + page->first_slot;
    uint64_t index = from > first ? (from - first) / page->slot_bytes : 0;

    for (; index < page->slots && first + index * page->slot_bytes < to; index++) {
        uint64_t start = first + index * page->slot_bytes, past = start + page->slot_bytes;
        struct slot slot = slot_at(ruby, index);
        uint64_t type = slot.here[0] & RUBY_SLOT_TYPE_MASK;
        if (!ruby_slot_is_live(slot.here[0]))
            continue;
        culet_comparison_add_bytes(writes, (unsigned)type, type == RUBY_SLOT_IMEMO ? 0 : slot.here[1],
                                   kind_of(ruby, &slot), (past < to ? past : to) - (start > from ? start : from));
    }
}

/* Counts flags only if the slot starts on this page, so that an object on two pages is counted once. */
static unsigned category(const struct comparison_ruby *ruby, const struct slot *slot, int begins_here,
                         struct comparison_writes *writes)
{
    uint64_t here = slot->here[0], there = slot->there[0];

    /* The collector links free slots through their first words. */
    if (!ruby_slot_is_live(here)) {
        if (rest_differs(slot, 3))
            return WRITES_REUSE;
        return ruby_slot_is_live(there) ? WRITES_FREED : WRITES_COLLECTOR;
    }
    if (!is_same(ruby, slot))
        return WRITES_REUSE;
    /* For example, the first cached call marks a method entry. */
    if (ruby_slot_is_code(here))
        return WRITES_INLINE_CACHES;
    if (here == there || rest_differs(slot, 1))
        return WRITES_DATA;
    if (begins_here)
        culet_comparison_count_flags(writes, here, there);
    return WRITES_FLAG_BITS;
}

unsigned culet_comparison_ruby_mask(const struct comparison_ruby *ruby, const uint64_t *words, size_t count,
                                    uint64_t from, struct comparison_writes *writes)
{
    const struct comparison_heap_page *page = ruby->page;
    uint64_t first = page->address + page->first_slot, past = first + page->slots * page->slot_bytes;
    unsigned mask = 0;

    for (size_t at = 0; at < count;) {
        struct slot slot;
        uint64_t index, end;

        if (words[at] < first || words[at] >= past) {
            mask |= WRITES_COLLECTOR;
            at++;
            continue;
        }
        index = (words[at] - first) / page->slot_bytes;
        end = first + (index + 1) * page->slot_bytes;
        slot = slot_at(ruby, index);
        mask |= category(ruby, &slot, first + index * page->slot_bytes >= from, writes);
        while (at < count && words[at] < end)
            at++;
    }
    return mask;
}

/* Ages that are not in the objects: Ruby clears the mark of old objects whenever a young one survives a collection
 * (gc/default/default.c, "RVALUE_AGE_SET"), which stores the flags that were there. */
int culet_comparison_ruby_ages(const struct comparison_ruby *ruby, uint64_t from, uint64_t to)
{
    const struct comparison_heap_page *page = ruby->page;
    uint64_t first = page->address + page->first_slot;
    uint64_t index = from > first ? (from - first + page->slot_bytes - 1) / page->slot_bytes : 0;

    if (ruby->old_mask != RUBY_SLOT_PROMOTED)
        return 0;
    for (; index < page->slots && first + index * page->slot_bytes < to; index++) {
        uint64_t flags = slot_at(ruby, index).here[0];
        if (ruby_slot_is_live(flags) && (flags & RUBY_SLOT_PROMOTED) == 0)
            return 1;
    }
    return 0;
}
