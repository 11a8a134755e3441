/* bytes.h - words in copied memory, which need not be aligned; sorted arrays. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline uint64_t culet_word_at(const void *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return word;
}

static inline uint32_t culet_int_at(const void *bytes)
{
    uint32_t number;

    memcpy(&number, bytes, sizeof number);
    return number;
}

static inline uint16_t culet_half_at(const void *bytes)
{
    uint16_t half;

    memcpy(&half, bytes, sizeof half);
    return half;
}

/* For qsort: orders uint64_t, or structures that begin with one. */
static inline int culet_by_word(const void *a, const void *b)
{
    uint64_t one = culet_word_at(a), other = culet_word_at(b);

    return (one > other) - (one < other);
}
