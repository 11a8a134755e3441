#include "stacks.h"

#include "memory.h"
#include "profile.h"

/* The node of the mark for stacks without room. */
#define FULL 1

bool culet_stacks_create(struct culet_stacks *stacks)
{
    stacks->node = culet_profile_map(CULET_STACK_NODES * sizeof *stacks->node);
    if (!culet_index_create(&stacks->index) || !stacks->node) {
        culet_stacks_destroy(stacks);
        return false;
    }
    stacks->node[FULL].word = culet_word_mark(CULET_MARK_FULL);
    stacks->count = FULL + 1;
    return true;
}

void culet_stacks_destroy(struct culet_stacks *stacks)
{
    culet_profile_unmap(stacks->node, CULET_STACK_NODES * sizeof *stacks->node);
    culet_index_destroy(&stacks->index);
    *stacks = (struct culet_stacks){0};
}

static uint64_t hash(uint32_t parent, uint64_t word)
{
    return culet_index_mix(word ^ (uint64_t)parent << 40 ^ parent);
}

static uint64_t hash_of(const void *stacks, uint32_t number)
{
    const struct culet_stack_node *node = &((const struct culet_stacks *)stacks)->node[number];

    return hash(node->parent, node->word);
}

/* The node of a frame under its caller; 0 if there is no room. */
static uint32_t child(struct culet_stacks *stacks, uint32_t parent, uint64_t word)
{
    struct culet_index *index = &stacks->index;
    bool room = culet_index_reserve(index, hash_of, stacks);
    uint32_t at = culet_index_first(index, hash(parent, word)), number;

    for (; (number = index->slot[at]); at = culet_index_next(index, at))
        if (stacks->node[number].word == word && stacks->node[number].parent == parent)
            return number;
    if (!room || stacks->count == CULET_STACK_NODES)
        return 0;
    stacks->node[stacks->count] = (struct culet_stack_node){.word = word, .parent = parent};
    culet_index_add(index, at, stacks->count);
    return stacks->count++;
}

uint32_t culet_stacks_intern(struct culet_stacks *stacks, const uint64_t *words, size_t count)
{
    uint32_t stack = 0;

    for (size_t i = count; i-- > 0;)
        if (!(stack = child(stacks, stack, words[i])))
            return FULL;
    return stack;
}
