#include "random.h"

#include "profile.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#define TLS _Thread_local __attribute__((tls_model("initial-exec")))

static _Atomic uint64_t mean = CULET_PROFILE_DEFAULT_BYTES;
static TLS uint64_t state;

void culet_profile_set_mean(uint64_t bytes)
{
    atomic_store_explicit(&mean, bytes ? bytes : 1, memory_order_relaxed);
}

uint64_t culet_profile_mean(void)
{
    return atomic_load_explicit(&mean, memory_order_relaxed);
}

void culet_profile_seed(uint64_t seed)
{
    state = seed ? seed : 1;
}

/* splitmix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014). */
static uint64_t next(void)
{
    if (!state) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        state = ((uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uintptr_t)&state) | 1;
    }
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#define FRACTION 32 /* bits of a logarithm behind the point */
#define LN2 0.69314718055994530942

/* The binary logarithm of a number above 0, with FRACTION bits behind the point: each squaring of the mantissa yields
 * one bit. libm is not linked. */
static uint64_t log2_of(uint64_t number)
{
    unsigned exponent = 63u - (unsigned)__builtin_clzll(number);
    uint64_t mantissa = number << (63 - exponent), log = exponent;

    for (unsigned i = 0; i < FRACTION; i++) {
        unsigned __int128 square = (unsigned __int128)mantissa * mantissa;
        bool above = (uint64_t)(square >> 127);
        mantissa = (uint64_t)(square >> (above ? 64 : 63));
        log = log << 1 | above;
    }
    return log;
}

uint64_t culet_profile_distance(void)
{
    /* Of 2^53 equally likely numbers above 0 and up to 1. */
    uint64_t number = (next() >> 11) + 1;
    double distance = (double)(((uint64_t)53 << FRACTION) - log2_of(number)) / ((uint64_t)1 << FRACTION) * LN2;

    distance *= (double)culet_profile_mean();
    return distance < 1 ? 1 : distance > 0x1p62 ? (uint64_t)1 << 62 : (uint64_t)distance;
}

/* 1 - exp(-x), by the series of exp(-x / 2^k), squared k times. */
static double one_minus_exp(double x)
{
    unsigned halvings = 0;
    double term = 1, sum = 0;

    if (x > 40)
        return 1;
    for (; x > 0.5; x /= 2)
        halvings++;
    for (unsigned i = 1; i < 16; i++) {
        term *= -x / i;
        sum -= term;
    }
    /* With p = 1 - exp(-y): 1 - exp(-2 y) = p (2 - p). */
    while (halvings--)
        sum *= 2 - sum;
    return sum;
}

double culet_profile_weight(size_t size)
{
    return 1 / one_minus_exp((double)(size ? size : 1) / (double)culet_profile_mean());
}
