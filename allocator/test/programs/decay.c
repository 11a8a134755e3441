/* decay.c - CULET_DECAY, the scavenger's interval: a short one returns a burst, a long one keeps it. The Makefile runs
 * each test with its value. */
#define _GNU_SOURCE
#include "programs.h"

#include "../../src/stats.h"

#define BLOCKS 40000
#define BYTES 1000

static uint64_t returned_bytes(void)
{
    int (*stats)(struct culet_stats *, size_t) =
        (int (*)(struct culet_stats *, size_t))dlsym(RTLD_DEFAULT, "culet_stats");
    struct culet_stats now;

    CHECK(stats && stats(&now, sizeof now) == 0, "no statistics");
    return now.returned_bytes;
}

static void burst(void)
{
    static void *block[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(BYTES);
        fill(block[i], 1, BYTES);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        free(block[i]);
}

TEST(a_short_interval_returns_the_burst)
{
    burst();
    for (int i = 0; i < 600 && returned_bytes() < BLOCKS * BYTES / 2; i++)
        usleep(100000);
    CHECK(returned_bytes() >= BLOCKS * BYTES / 2, "%lu bytes were returned", (unsigned long)returned_bytes());
}

/* With the default interval all of it would be back after a second. */
TEST(a_long_interval_keeps_the_burst)
{
    burst();
    sleep(3);
    CHECK(returned_bytes() < BLOCKS * BYTES / 8, "%lu bytes were returned", (unsigned long)returned_bytes());
}

/* What a quarantine keeps from going back is bounded, also where each of its blocks is the last one of its page. */
#define LITTLE ((size_t)4 << 20)

TEST(a_burst_leaves_little)
{
    size_t start = smaps_bytes("Rss:"), end;

    burst();
    for (int i = 0; i < 600 && (end = smaps_bytes("Rss:")) > start + LITTLE; i++)
        usleep(100000);
    CHECK(end <= start + LITTLE, "%zu KiB resident at first, %zu at the end", start / 1024, end / 1024);
}

TEST(a_trim_empties_the_quarantine)
{
    size_t start = smaps_bytes("Rss:");

    burst();
    malloc_trim(0);
    size_t end = smaps_bytes("Rss:");
    CHECK(end <= start + LITTLE, "%zu KiB resident at first, %zu at the end", start / 1024, end / 1024);
}

CHECK_MAIN
