/* next.h - the allocator behind the recorder: whatever library comes after it. */
#ifndef CULET_NEXT_H
#define CULET_NEXT_H

#include <stdbool.h>
#include <stddef.h>

struct culet_next {
    void *(*malloc)(size_t bytes);
    void (*free)(void *block);
    void *(*calloc)(size_t count, size_t bytes);
    void *(*realloc)(void *block, size_t bytes);
    void *(*memalign)(size_t alignment, size_t bytes);
    void *(*aligned_alloc)(size_t alignment, size_t bytes);
    int (*posix_memalign)(void **block, size_t alignment, size_t bytes);
    void *(*valloc)(size_t bytes);
    void *(*pvalloc)(size_t bytes);
    void (*free_sized)(void *block, size_t bytes);                           /* NULL where there is none */
    void (*free_aligned_sized)(void *block, size_t alignment, size_t bytes); /* likewise */
};

extern struct culet_next culet_next;

/* Finds the functions. False while that is under way: the look-up itself may allocate, and gets its memory from
 * culet_early_malloc. */
bool culet_next_find(void);

/* Whether the functions are known, or else finds them. */
static inline bool culet_next_ready(void)
{
    return __builtin_expect(culet_next.malloc != NULL, 1) || culet_next_find();
}

/* Zeroed memory for the look-up, a few KiB in all, never given back; NULL when it is used up. */
void *culet_early_malloc(size_t bytes, size_t alignment);

/* Whether it is a block of culet_early_malloc's; its size is then unknown, but it ends before `*end`. */
bool culet_early_owns(const void *block, const char **end);

#endif
