/* The distances between samples, and the weights. */
#include "check.h"
#include "random.h"

#include <math.h>

TEST(distances_have_the_mean_and_the_spread_of_an_exponential_distribution)
{
    double sum = 0, squares = 0, below = 0, mean = 524288;
    unsigned draws = 200000;

    culet_profile_seed(1);
    culet_profile_set_mean(524288);
    for (unsigned i = 0; i < draws; i++) {
        double distance = (double)culet_profile_distance();
        sum += distance;
        squares += distance * distance;
        below += distance < mean * M_LN2;
    }
    sum /= draws;
    /* Five standard errors of each. */
    CHECK(fabs(sum / mean - 1) < 5 / sqrt(draws), "the mean is %g", sum);
    CHECK(fabs(squares / draws / (2 * mean * mean) - 1) < 5 * sqrt(5) / sqrt(draws), "the second moment is %g",
          squares);
    CHECK(fabs(below / draws - 0.5) < 2.5 / sqrt(draws), "%g are below the median", below / draws);
}

TEST(distances_are_at_least_1)
{
    culet_profile_seed(2);
    culet_profile_set_mean(1);
    for (unsigned i = 0; i < 100000; i++)
        CHECK(culet_profile_distance() >= 1, "a distance of 0");
    culet_profile_set_mean(0);
    CHECK_EQUAL(culet_profile_mean(), 1);
}

TEST(weights_are_those_of_the_formula)
{
    for (unsigned shift = 0; shift < 40; shift++) {
        double mean = (double)(UINT64_C(1) << (shift / 2)), size = (double)(UINT64_C(1) << shift);
        culet_profile_set_mean((uint64_t)mean);
        double weight = culet_profile_weight((size_t)size), expected = -1 / expm1(-size / mean);
        CHECK(fabs(weight / expected - 1) < 1e-9, "of %g bytes: %g, not %g", size, weight, expected);
    }
    culet_profile_set_mean(524288);
    CHECK(culet_profile_weight(0) > 1, "a weight of 0");
    CHECK(fabs(culet_profile_weight(16) / 32768.5 - 1) < 1e-6, "16 bytes: %g", culet_profile_weight(16));
}

CHECK_MAIN
