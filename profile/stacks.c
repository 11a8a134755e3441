#include "stacks.h"

#include "memory.h"
#include "profile.h"

/* The node of the mark for stacks without room. */
#define FULL 1

bool culet_stacks_create(struct culet_stacks *stacks)
{
    stacks->node = culet_profile_map(CULET_STACK_NODES * sizeof *stacks->node);
    stacks->index = culet_profile_map(CULET_STACK_INDEX * sizeof *stacks->index);
    if (!stacks->node || !stacks->index) {
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
    culet_profile_unmap(stacks->index, CULET_STACK_INDEX * sizeof *stacks->index);
    *stacks = (struct culet_stacks){0};
}

static uint32_t hash(uint32_t parent, uint64_t word)
{
    uint64_t h = (word ^ (uint64_t)parent << 40 ^ parent) * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(h >> 40) & (CULET_STACK_INDEX - 1);
}

/* The node of a frame under its caller; 0 if there is no room. */
static uint32_t child(struct culet_stacks *stacks, uint32_t parent, uint64_t word)
{
    uint32_t at = hash(parent, word), number;

    for (; (number = stacks->index[at]); at = (at + 1) & (CULET_STACK_INDEX - 1))
        if (stacks->node[number].word == word && stacks->node[number].parent == parent)
            return number;
    if (stacks->count == CULET_STACK_NODES)
        return 0;
    stacks->node[stacks->count] = (struct culet_stack_node){.word = word, .parent = parent};
    return stacks->index[at] = stacks->count++;
}

uint32_t culet_stacks_intern(struct culet_stacks *stacks, const uint64_t *words, size_t count)
{
    uint32_t stack = 0;

    for (size_t i = count; i-- > 0;)
        if (!(stack = child(stacks, stack, words[i])))
            return FULL;
    return stack;
}
