/* random.h - distances between samples, and what a sample stands for. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Sets the mean distance in bytes, at least 1. */
void culet_profile_set_mean(uint64_t bytes);
uint64_t culet_profile_mean(void);

/* The distance in bytes from one sample to the next: exponentially distributed with the set mean, at least 1. */
uint64_t culet_profile_distance(void);

/* How many allocations of `size` bytes a sample of one stands for: 1 / (1 - exp(-size / mean)). */
double culet_profile_weight(size_t size);

/* Makes the calling thread's distances repeatable, for tests. */
void culet_profile_seed(uint64_t seed);
