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

/* Samples `total` bytes of blocks of four sizes as an allocator does; the estimate and its variance. */
static double estimate(double total, double *variance)
{
    static const double sizes[] = {16, 200, 4096, 100000};
    double sum = 0;
    uint64_t distance = culet_profile_distance();

    *variance = 0;
    for (double done = 0; done < total;) {
        for (unsigned i = 0; i < 4; i++) {
            double size = sizes[i], weight = culet_profile_weight((size_t)size);
            done += size;
            if (size < (double)distance) {
                distance -= (uint64_t)size;
                continue;
            }
            sum += weight * size;
            *variance += weight * (weight - 1) * size * size;
            distance = culet_profile_distance();
        }
    }
    return sum;
}

TEST(estimates_are_unbiased_and_their_variance_is_known)
{
    double blocks = 16 + 200 + 4096 + 100000, total = 200 * blocks, sum = 0, squares = 0, variances = 0, variance;
    unsigned runs = 4000;

    culet_profile_seed(3);
    culet_profile_set_mean(65536);
    for (unsigned i = 0; i < runs; i++) {
        double found = estimate(total, &variance);
        sum += found / total;
        squares += (found / total - 1) * (found / total - 1);
        variances += variance / total / total;
    }
    double deviation = sqrt(variances / runs);
    CHECK(fabs(sum / runs - 1) < 5 * deviation / sqrt(runs), "the mean of the estimates is %g", sum / runs);
    CHECK(fabs(squares / variances - 1) < 5 * M_SQRT2 / sqrt(runs), "the variance is %g times the estimated one",
          squares / variances);
}

CHECK_MAIN
