#define _GNU_SOURCE
#include "harden.h"

#include "os.h"

#include <string.h>

#define STEP UINT64_C(0x9E3779B97F4A7C15)

uint8_t culet_harden_level;
static uint64_t seed;
static uint64_t keys[2];
static _Atomic uint64_t draws;

unsigned culet_harden_parse(const char *value)
{
    return value[0] >= '1' && value[0] <= '0' + CULET_HARDEN_ALL && !value[1] ? (unsigned)(value[0] - '0') : 0;
}

/* The output function of SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
 * 2014). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

void culet_harden_setup(unsigned level)
{
    culet_harden_level = (uint8_t)level;
    if (!level)
        return;
    culet_os_random(keys, sizeof keys);
    culet_harden_reseed();
}

void culet_harden_reseed(void)
{
    if (culet_harden_level)
        culet_os_random(&seed, sizeof seed);
}

uint64_t culet_harden_random(void)
{
    return mix(mix(seed + atomic_fetch_add_explicit(&draws, STEP, memory_order_relaxed)) ^ keys[0]);
}

uint64_t culet_harden_canary(uintptr_t address, unsigned word)
{
    return mix(mix(address + word * STEP + keys[0]) ^ keys[1]);
}
