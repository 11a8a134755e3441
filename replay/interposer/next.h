/* next.h - the next malloc functions in symbol lookup order (dlsym RTLD_NEXT): the allocator that serves the program. */
#pragma once

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
    void (*free_sized)(void *block, size_t bytes);                           /* NULL where there is none */
    void (*free_aligned_sized)(void *block, size_t alignment, size_t bytes); /* likewise */
};

extern struct culet_next culet_next;

/* Looks the functions up. False during the lookup: dlsym may allocate, and is served by culet_early_malloc. */
bool culet_next_find(void);

static inline bool culet_next_ready(void)
{
    return __builtin_expect(culet_next.malloc != NULL, 1) || culet_next_find();
}

/* Zeroed memory for the lookup, 16 KiB in all, never freed; NULL when it is used up. */
void *culet_early_malloc(size_t bytes, size_t alignment);

/* The bytes up to the end of that memory, which a block of it has at most; 0: culet_early_malloc did not return it. */
size_t culet_early_left(const void *block);
