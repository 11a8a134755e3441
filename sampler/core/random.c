#include "random.h"

#include "clock.h"
#include "profile.h"
#include "tls.h"

#include <stdatomic.h>
#include <stdbool.h>

static _Atomic uint64_t mean = CULET_PROFILE_DEFAULT_BYTES;
static CULET_TLS uint64_t state;

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
    if (!state)
        state = (culet_profile_clock(CLOCK_MONOTONIC) << 20 ^ (uintptr_t)&state) | 1;
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#define LN2 0.69314718055994530942

/* The natural logarithm of a number above 0; libm is not linked. The number is m * 2^e with m between sqrt(1/2) and
 * sqrt(2), and log(m) = 2 artanh((m - 1) / (m + 1)), whose series has the precision of a double after nine terms. */
static double log_of(uint64_t number)
{
    unsigned exponent = 63u - (unsigned)__builtin_clzll(number);
    double m = (double)number / (double)((uint64_t)1 << exponent), sum = 0;

    if (m > 1.4142135623730951) {
        m /= 2;
        exponent++;
    }
    double s = (m - 1) / (m + 1), square = s * s;
    for (int i = 17; i > 0; i -= 2)
        sum = sum * square + 2.0 / i;
    return sum * s + exponent * LN2;
}

uint64_t culet_profile_distance(void)
{
    /* Of 2^53 equally likely numbers above 0 and up to 1. */
    uint64_t number = (next() >> 11) + 1;
    double distance = (53 * LN2 - log_of(number)) * (double)culet_profile_mean();

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
    for (unsigned i = 1; term > x * 0x1p-56 || term < -x * 0x1p-56; i++) {
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
