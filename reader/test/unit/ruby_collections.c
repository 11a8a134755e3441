/* Finds the collector's counts by what descriptions of pages have in common, and only where one place fits. */
#include "ruby/ruby_heap.h"

#include "check.h"

#define ENTRIES UINT64_C(0x560000001000)
#define OTHERS UINT64_C(0x7f0000000000)
#define DESCRIPTION 128u
#define PAGES 12u
#define POINTER 16u

static unsigned char descriptions[PAGES][DESCRIPTION], state[CULET_RUBY_STATE];
static struct culet_ruby_described pages[PAGES];

static void put(unsigned char *bytes, size_t at, uint64_t word)
{
    memcpy(bytes + at, &word, sizeof word);
}

/* Pages of three slot sizes, whose entries are 200 bytes apart. */
static void describe(void)
{
    memset(descriptions, 0, sizeof descriptions);
    for (unsigned i = 0; i < PAGES; i++) {
        pages[i] = (struct culet_ruby_described){40u << i % 3, descriptions[i]};
        put(descriptions[i], POINTER, ENTRIES + 200 * (2 - i % 3));
        put(descriptions[i], POINTER + 8, OTHERS + 65536 * i);
    }
}

static void count_as(size_t sum, size_t at, uint64_t minor, uint64_t major)
{
    put(state, at, minor);
    put(state, at + 8, major);
    put(state, at + sum, minor + major);
}

static void count(size_t at, uint64_t minor, uint64_t major)
{
    count_as(56, at, minor, major);
}

TEST(pages_of_one_size_point_to_one_entry)
{
    describe();
    CHECK_EQUAL(culet_ruby_state(pages, PAGES, POINTER), ENTRIES);
    CHECK_EQUAL(culet_ruby_state(pages, PAGES, POINTER + 8), 0);
    CHECK_EQUAL(culet_ruby_state(pages, PAGES, 0), 0);
    CHECK_EQUAL(culet_ruby_state(pages, 0, POINTER), 0);
    put(descriptions[4], POINTER, ENTRIES);
    CHECK_EQUAL(culet_ruby_state(pages, PAGES, POINTER), 0);
    describe();
    for (unsigned i = 0; i < PAGES; i += 3)
        put(descriptions[i], POINTER, OTHERS);
    CHECK_EQUAL(culet_ruby_state(pages, PAGES, POINTER), 0);
}

TEST(one_place_that_fits)
{
    count(352, 130, 8);
    struct culet_ruby_collections found = culet_ruby_collections_in(state);
    CHECK(found.known, "not found");
    CHECK_EQUAL(found.minor, 130);
    CHECK_EQUAL(found.major, 8);
    count(CULET_RUBY_STATE - 64, 3, 4);
    CHECK(!culet_ruby_collections_in(state).known, "two places fit");
}

TEST(one_place_that_fits_as_in_4_1)
{
    count_as(104, CULET_RUBY_STATE - 112, 130, 8);
    struct culet_ruby_collections found = culet_ruby_collections_in(state);
    CHECK(found.known, "not found");
    CHECK_EQUAL(found.minor, 130);
    CHECK_EQUAL(found.major, 8);
}

TEST(no_place_fits)
{
    CHECK(!culet_ruby_collections_in(state).known, "zeros");
    count(352, 130, 0);
    CHECK(!culet_ruby_collections_in(state).known, "no major collection yet");
    memset(state, 0xff, sizeof state);
    CHECK(!culet_ruby_collections_in(state).known, "ones");
    count(CULET_RUBY_STATE - 64, 3, 4);
    CHECK(culet_ruby_collections_in(state).known, "the last place");
}

CHECK_MAIN
