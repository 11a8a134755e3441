/* Recognizes pages of Ruby's heap: descriptions of all releases, and data that only looks like one. */
#include <inttypes.h>
#include "ruby/ruby_page.h"

#include "check.h"

#define AT UINT64_C(0x7f0000040000)
#define ELSEWHERE UINT64_C(0x560000001000)

static unsigned char description[CULET_RUBY_DESCRIPTION];

static void put_half(unsigned at, uint16_t half)
{
    memcpy(description + at, &half, sizeof half);
}

static void put_word(unsigned at, uint64_t word)
{
    memcpy(description + at, &word, sizeof word);
}

/* Bytes of a slot, slots, free, final and pinned ones, flags; pool, next free page. */
static void describe(uint16_t slot_bytes, uint16_t slots)
{
    memset(description, 0, sizeof description);
    put_half(0, slot_bytes);
    put_half(2, slots);
    put_half(4, 7);
    put_word(16, ELSEWHERE);
    put_word(24, ELSEWHERE + 256);
}

/* As 3.1 to 3.3 have it: the first slot, the first free one. */
static void describe_by_start(uint16_t slot_bytes, uint16_t slots, uint64_t start)
{
    describe(slot_bytes, slots);
    put_word(32, start);
    put_word(40, start + 40);
}

/* As 3.4 and later have it: the page, the first slot, the first free one. */
static void describe_by_body(uint16_t slot_bytes, uint16_t slots, uint64_t body, uint64_t start)
{
    describe(slot_bytes, slots);
    put_word(32, body);
    put_word(40, start);
    put_word(48, start + slot_bytes);
}

/* As 4.1 has it: the first free slots, the first slot, the reciprocal of the slot size, the numbers, the pool, [the
 * objects' space], the next free page, the page. `between`: words from the numbers to the page. */
static void describe_by_reciprocal(uint16_t slot_bytes, uint16_t slots, uint64_t body, uint64_t start, unsigned between)
{
    memset(description, 0, sizeof description);
    put_word(0, start + 3u * slot_bytes);
    put_word(8, start);
    put_word(16, ((UINT64_C(1) << 48) + slot_bytes - 1) / slot_bytes);
    put_half(24, slot_bytes);
    put_half(26, slots);
    put_half(28, 5);
    put_word(40, ELSEWHERE);
    put_word(48, ELSEWHERE + 256);
    put_word(24 + between * 8, body);
    put_word(32 + between * 8, ELSEWHERE + 512);
    put_word(40 + between * 8, ELSEWHERE + 768);
    memset(description + 104, 0xff, sizeof description - 104); /* bits of slots */
}

static void check_page(const struct culet_ruby_page *page, uint32_t bytes, uint32_t slot_bytes, uint32_t slots,
                       uint32_t first)
{
    CHECK_EQUAL(page->start, AT);
    CHECK_EQUAL(page->bytes, bytes);
    CHECK_EQUAL(page->slot_bytes, slot_bytes);
    CHECK_EQUAL(page->slots, slots);
    CHECK_EQUAL(page->first, first);
}

TEST(pages_of_all_releases)
{
    struct culet_ruby_page page;

    describe_by_start(40, 409, AT + 8); /* 3.1 */
    CHECK(culet_ruby_page_recognize(AT, description, &page), "3.1");
    check_page(&page, CULET_RUBY_SHORT, 40, 409, 8);
    describe_by_start(40, 408, AT + 40);
    CHECK(culet_ruby_page_recognize(AT, description, &page), "3.1, first slot at 40");
    describe_by_start(40, 1637, AT + 40); /* 3.2 and 3.3 */
    CHECK(culet_ruby_page_recognize(AT, description, &page), "3.3, 40 bytes");
    check_page(&page, CULET_RUBY_LONG, 40, 1637, 40);
    describe_by_start(640, 102, AT + 32);
    CHECK(culet_ruby_page_recognize(AT, description, &page), "3.3, 640 bytes");
    describe_by_body(160, 409, AT, AT + 24); /* 3.4 and 4.0 */
    CHECK(culet_ruby_page_recognize(AT, description, &page), "3.4");
    check_page(&page, CULET_RUBY_LONG, 160, 409, 24);
    describe_by_body(640, 102, AT, AT + 24);
    CHECK(culet_ruby_page_recognize(AT, description, &page), "3.4, 640 bytes");
}

/* The twelve sizes of 4.1; a page's first slot is aligned to its size where the address allows. */
TEST(pages_with_the_reciprocal_of_the_slot_size)
{
    static const uint16_t sizes[] = {32, 40, 64, 80, 96, 128, 160, 256, 512, 640, 768, 1024};
    struct culet_ruby_page page;

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned between = 4; between <= 5; between++) { /* 5: with a space of objects per Ractor */
            uint16_t size = sizes[i];
            uint64_t start = (AT + 8 + size - 1) / size * size;
            uint16_t slots = (uint16_t)((AT + CULET_RUBY_LONG - start) / size);
            describe_by_reciprocal(size, slots, AT, start, between);
            CHECK(culet_ruby_page_recognize(AT, description, &page), "4.1, %u bytes", size);
            check_page(&page, CULET_RUBY_LONG, size, slots, (uint32_t)(start - AT));
            CHECK_EQUAL(page.layout, 24 + between * 8);
            put_word(0, start + size); /* the second slot is the first free one */
            CHECK(culet_ruby_page_recognize(AT, description, &page), "4.1, %u bytes, second slot free", size);
            CHECK_EQUAL(page.first, start - AT);
            put_word(0, 0); /* full, or a Ractor allocates from it */
            CHECK(culet_ruby_page_recognize(AT, description, &page), "4.1, %u bytes, nothing free", size);
            put_half(26, (uint16_t)(slots - 1));
            CHECK(!culet_ruby_page_recognize(AT, description, &page), "a slot too few of %u bytes", size);
            put_half(26, slots);
            put_word(16, ((UINT64_C(1) << 48) + size - 1) / size + 1);
            CHECK(!culet_ruby_page_recognize(AT, description, &page), "another reciprocal than that of %u bytes", size);
        }
}

/* An emptied page keeps its reciprocal and the links of the list that it was in. */
TEST(a_page_without_slots_that_begins_with_its_free_region)
{
    struct culet_ruby_page page;

    describe_by_reciprocal(40, 1638, AT, AT + 16, 4);
    put_word(0, 0);
    put_word(8, 0);
    put_word(24, 0);
    put_word(40, 0);
    CHECK(culet_ruby_page_recognize(AT, description, &page), "4.1, emptied");
    check_page(&page, CULET_RUBY_LONG, 0, 0, 0);
    CHECK_EQUAL(page.layout, 56);
    CHECK(!culet_ruby_page_recognize(AT + 0x4000, description, &page), "the description of another page");
    put_word(8, ELSEWHERE);
    CHECK(!culet_ruby_page_recognize(AT, description, &page), "a first slot elsewhere");
    memset(description, 0, sizeof description);
    put_word(56, AT);
    CHECK(culet_ruby_page_recognize(AT, description, &page), "4.1, not used yet");
    CHECK_EQUAL(page.layout, 56);
}

TEST(a_page_without_slots)
{
    static unsigned char memory[CULET_RUBY_LONG];
    unsigned char bitmap[8] = {0};
    struct culet_ruby_slots slots = {0};
    struct culet_ruby_page page;

    describe_by_body(0, 0, AT, 0);
    put_word(48, 0);
    CHECK(culet_ruby_page_recognize(AT, description, &page), "3.4, kept for any size");
    check_page(&page, CULET_RUBY_LONG, 0, 0, 0);
    CHECK_EQUAL(page.layout, 32);
    CHECK_EQUAL(culet_ruby_page_bitmap(&page), 0);
    culet_ruby_page_live(&page, memory, 0, sizeof memory, bitmap, &slots);
    CHECK_EQUAL(slots.live, 0);
    CHECK(!culet_ruby_page_recognize(AT + 0x4000, description, &page), "the description of another page");
}

/* A free page of an arena of 4.1: the record of the arena says that there are some. */
TEST(a_free_page_of_an_arena)
{
    struct culet_ruby_page page;

    memset(description, 0, sizeof description);
    put_word(8, AT - 0x20000);
    put_word(16, 32 * CULET_RUBY_LONG);
    put_word(24, AT);
    put_word(32, UINT64_C(2) << 32 | 2);
    CHECK(culet_ruby_page_recognize_free(AT, 0, description, &page), "the last one");
    check_page(&page, CULET_RUBY_LONG, 0, 0, 0);
    CHECK_EQUAL(page.layout, 0);
    CHECK(culet_ruby_page_recognize_free(AT, (AT + 0x10000) | 1, description, &page), "with a link, given back");
    CHECK(!culet_ruby_page_recognize_free(AT, AT + 0x10008, description, &page), "a link to no page");
    CHECK(!culet_ruby_page_recognize_free(AT, AT - 0x40000, description, &page), "a description in malloc's memory");
    CHECK(!culet_ruby_page_recognize_free(AT + 0x4000, 0, description, &page), "no page");
    CHECK(!culet_ruby_page_recognize_free(AT - 0x30000, 0, description, &page), "before the arena");
    CHECK(!culet_ruby_page_recognize_free(AT + 0x1e0000, 0, description, &page), "behind the arena");
    put_word(32, 0);
    CHECK(!culet_ruby_page_recognize_free(AT, 0, description, &page), "an arena without free pages");
    put_word(32, 33);
    CHECK(!culet_ruby_page_recognize_free(AT, 0, description, &page), "more free pages than there are");
}

/* Descriptions are allocated by malloc and may lie right after the page. */
TEST(a_description_that_lies_next_to_the_page)
{
    struct culet_ruby_page page;

    describe_by_start(40, 409, AT + 16);
    put_word(24, AT + 0xcd80);
    CHECK(culet_ruby_page_recognize(AT, description, &page), "the next free page's description was taken for a slot");
    check_page(&page, CULET_RUBY_SHORT, 40, 409, 16);
}

TEST(other_data)
{
    struct culet_ruby_page page;

    memset(description, 0, sizeof description);
    CHECK(!culet_ruby_page_recognize(AT, description, &page), "zeroes");
    memset(description, 0xff, sizeof description);
    CHECK(!culet_ruby_page_recognize(AT, description, &page), "ones");
    describe_by_start(40, 300, AT + 8);
    CHECK(!culet_ruby_page_recognize(AT, description, &page), "not full of slots");
    describe_by_start(40, 500, AT + 8);
    CHECK(!culet_ruby_page_recognize(AT, description, &page),
          "more slots than fit a short page, fewer than a long one has");
    describe_by_start(36, 454, AT + 8);
    CHECK(!culet_ruby_page_recognize(AT, description, &page), "slots that are not aligned");
    describe_by_start(40, 409, ELSEWHERE);
    CHECK(!culet_ruby_page_recognize(AT, description, &page), "no pointer back");
    describe_by_start(40, 409, AT + 8192);
    CHECK(!culet_ruby_page_recognize(AT, description, &page), "the first slot is in the middle");
    describe_by_start(640, 102, AT + 0x4000 + 32);
    CHECK(!culet_ruby_page_recognize(AT + 0x4000, description, &page), "a long page that is not aligned");
}

/* Random data leads to no access outside of the buffers. */
TEST(random_descriptions_do_no_harm)
{
    uint64_t state = 7;
    struct culet_ruby_page page;
    unsigned found = 0;

    for (unsigned i = 0; i < 200000; i++) {
        for (unsigned w = 0; w < sizeof description; w += 8)
            put_word(w, check_random(&state) % 3 ? AT + check_random(&state) % 70000 : check_random(&state));
        if (!culet_ruby_page_recognize(AT, description, &page))
            continue;
        found++;
        CHECK(page.first + (uint64_t)page.slots * page.slot_bytes <= page.bytes, "slots beyond the page");
    }
    CHECK(found < 100, "%u pages in random memory", found);
}

TEST(live_slots_part_by_part)
{
    static unsigned char memory[CULET_RUBY_SHORT];
    const unsigned char ages[4] = {0, 0x20, 0x40, 0x60};
    unsigned char bitmap[64] = {0}, parts[64] = {0};
    struct culet_ruby_page page;
    struct culet_ruby_slots slots = {0}, in_parts = {0}, expected = {0};

    describe_by_start(40, 409, AT + 8);
    CHECK(culet_ruby_page_recognize(AT, description, &page), "3.1");
    for (uint32_t slot = 0; slot < page.slots; slot++) {
        unsigned type = slot % 3 ? slot % 31 : 0, age = slot / 4 % 4;
        memory[page.first + slot * 40] = (unsigned char)(ages[type ? age : 3] | type); /* a free one has flags */
        expected.live += type != 0;
        expected.promoted += type != 0 && age % 2 == 1;
        expected.both += type != 0 && age == 3;
        expected.upper += type != 0 && type != 0x0c && age >= 2;
    }
    culet_ruby_page_live(&page, memory, 0, sizeof memory, bitmap, &slots);
    CHECK(memcmp(&slots, &expected, sizeof slots) == 0, "%" PRIu64 " live, %" PRIu64 " promoted", slots.live,
          slots.promoted);
    for (uint32_t from = 0; from < sizeof memory; from += 4096)
        culet_ruby_page_live(&page, memory + from, from, from + 4096, parts, &in_parts);
    CHECK(memcmp(&in_parts, &expected, sizeof slots) == 0, "%" PRIu64 " live part by part", in_parts.live);
    CHECK(memcmp(bitmap, parts, sizeof bitmap) == 0, "part by part other slots are live");
    CHECK_EQUAL(culet_ruby_page_bitmap(&page), 52);
}

CHECK_MAIN
