/* A library to preload: a malloc that samples every block of SAMPLER_FROM to SAMPLER_TO bytes, and every SAMPLER_EVERY-th
 * of all others, with a weight of 1. It exports the table of the profile as the allocator does. With
 * SAMPLER_FORK the child of a fork allocates a block of SAMPLER_FROM bytes in a fork handler. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "../../sampler/core/samples.h"

#define SLOTS ((size_t)1 << 20)
#define TRIES 64
#define EXPORTED __attribute__((visibility("default")))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

static struct entry {
    void *_Atomic block;
    _Atomic uint32_t sample;
} table[SLOTS];
static size_t from, to, every;
static _Atomic size_t calls;

static size_t number(const char *name, size_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Another library's handler, before those of libraries that are loaded later. */
static void allocate_in_child(void)
{
    void *volatile block = malloc(from);

    free(block);
}

__attribute__((constructor)) static void set_up(void)
{
    from = number("SAMPLER_FROM", 1);
    to = number("SAMPLER_TO", 0);
    every = number("SAMPLER_EVERY", 0);
    pthread_atfork(culet_profile_prepare, culet_profile_parent, culet_profile_child);
    if (getenv("SAMPLER_FORK"))
        pthread_atfork(NULL, NULL, allocate_in_child);
}

static struct entry *slot(const void *block, size_t attempt)
{
    return &table[(((uintptr_t)block * 0x9e3779b97f4a7c15 >> 40) + attempt) % SLOTS];
}

static void keep(void *block, uint32_t number)
{
    for (size_t i = 0; i < TRIES; i++) {
        void *expected = NULL;
        if (atomic_compare_exchange_strong(&slot(block, i)->block, &expected, block)) {
            slot(block, i)->sample = number;
            return;
        }
    }
    culet_profile_api.remove(number);
}

static void sample(void *block, size_t size)
{
    uint64_t words[CULET_PROFILE_FRAMES];

    if (!block || culet_profile_inside() || !culet_profile_api.running())
        return;
    if ((size < from || size > to) && (!every || ++calls % every))
        return;
    size_t count = culet_profile_api.capture(words, CULET_PROFILE_FRAMES);
    uint32_t number = culet_profile_api.add(CULET_PROFILE_MALLOC, block, size, 1.0, 0, words, count);
    if (number)
        keep(block, number);
}

static void forget(const void *block)
{
    for (size_t i = 0; block && i < TRIES; i++) {
        struct entry *found = slot(block, i);
        if (found->block == block) {
            culet_profile_api.remove(found->sample);
            found->block = NULL;
            return;
        }
    }
}

EXPORTED void *malloc(size_t size)
{
    void *block = __libc_malloc(size);

    sample(block, size);
    return block;
}

EXPORTED void *calloc(size_t count, size_t size)
{
    void *block = __libc_calloc(count, size);

    sample(block, count * size);
    return block;
}

EXPORTED void *realloc(void *block, size_t size)
{
    forget(block);
    block = __libc_realloc(block, size);
    sample(block, size);
    return block;
}

EXPORTED void free(void *block)
{
    forget(block);
    __libc_free(block);
}
