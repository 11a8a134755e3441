/* Size classes: each size fits its class and no smaller one, waste is bounded, shapes are consistent. */
#include "check.h"
#include "size_class.h"
#include "slab.h"

static double waste(size_t bytes)
{
    size_t size = culet_classes[culet_size_class(bytes)].size;

    return (double)(size - bytes) / (double)size;
}

TEST(every_size_gets_the_smallest_class_it_fits)
{
    culet_size_class_setup();
    for (size_t bytes = 0; bytes <= CULET_SMALL_MAX; bytes++) {
        unsigned klass = culet_size_class(bytes);
        CHECK(klass >= 1 && klass <= CULET_SIZES, "%zu bytes: class %u", bytes, klass);
        CHECK(culet_classes[klass].size >= bytes, "%zu bytes: %u-byte blocks", bytes, culet_classes[klass].size);
        if (klass > 1)
            CHECK(culet_classes[klass - 1].size < bytes, "%zu bytes would fit %u", bytes,
                  culet_classes[klass - 1].size);
    }
    CHECK_EQUAL(culet_size_class(CULET_SMALL_MAX), CULET_SIZES);
    CHECK_EQUAL(culet_classes[CULET_SIZES].size, CULET_SMALL_MAX);
}

TEST(sizes_grow_and_are_multiples_of_the_alignment)
{
    culet_size_class_setup();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        CHECK(culet_classes[klass].size % CULET_ALIGNMENT == 0, "class %u", klass);
        CHECK((klass - 1) % CULET_SIZES == 0 || culet_classes[klass].size > culet_classes[klass - 1].size, "class %u",
              klass);
    }
}

TEST(callocs_classes_have_the_same_sizes)
{
    culet_size_class_setup();
    CHECK(CULET_CLASSES <= 256, "a pagemap entry has 8 bits for the class");
    for (unsigned klass = 1; klass <= CULET_SIZES; klass++) {
        CHECK_EQUAL(culet_classes[klass + CULET_SIZES].size, culet_classes[klass].size);
        CHECK_EQUAL(culet_size_class_plain(klass + CULET_SIZES), klass);
        CHECK_EQUAL(culet_size_class_plain(klass), klass);
    }
}

TEST(waste_is_bounded)
{
    double sum = 0;

    culet_size_class_setup();
    for (size_t bytes = 17; bytes <= 1024; bytes++)
        sum += waste(bytes);
    CHECK(sum / (1024 - 16) <= 0.03, "mean waste over 17 to 1,024 bytes is %.4f", sum / (1024 - 16));
    for (size_t bytes = 128; bytes <= CULET_SMALL_MAX; bytes++)
        CHECK(waste(bytes) <= 0.125, "%zu bytes waste %.4f of their block", bytes, waste(bytes));
}

TEST(a_round_size_and_a_terminator_waste_little)
{
    culet_size_class_setup();
    for (size_t start = CULET_TINY_MAX; start < CULET_SMALL_MAX; start *= 2) {
        CHECK(waste(start) == 0, "%zu bytes waste %.4f of their block", start, waste(start));
        for (size_t bytes = start + 1; bytes < 2 * start; bytes += start / 8)
            CHECK(waste(bytes) < 1.0 / 32, "%zu bytes waste %.4f of their block", bytes, waste(bytes));
    }
}

TEST(shapes_fit_the_descriptor)
{
    culet_size_class_setup();
    for (unsigned klass = 1; klass < CULET_CLASSES; klass++) {
        const struct culet_class *c = &culet_classes[klass];
        size_t bytes = c->pages * CULET_PAGE, colours = c->colours * CULET_CACHE_LINE, blocks = 0;
        unsigned units = culet_class_units(c);
        CHECK(c->pages >= 1 && c->pages <= CULET_SLAB_PAGES, "class %u: %u pages", klass, c->pages);
        CHECK(c->size > CULET_TINY_MAX || c->pages <= CULET_TINY_SLAB_PAGES, "class %u: %u pages", klass, c->pages);
        CHECK(c->count >= 1 && (size_t)c->count * c->size <= bytes - colours, "class %u: %u blocks", klass, c->count);
        CHECK(units >= 1 && units <= CULET_UNITS, "class %u: %u units", klass, units);
        for (unsigned u = 0; u < units; u++) {
            uint64_t all = culet_class_all(c, u);
            CHECK(all && (all & (all + 1)) == 0, "class %u, unit %u: %lx", klass, u, (unsigned long)all);
            CHECK(u + 1u == units || !~all, "class %u: unit %u is shorter than the last", klass, u);
            blocks += (size_t)__builtin_popcountll(all);
        }
        CHECK_EQUAL(blocks, c->count);
        CHECK(bytes - (size_t)c->count * c->size <= bytes / 8, "class %u: %zu of %zu bytes behind the last block",
              klass, bytes - (size_t)c->count * c->size, bytes);
    }
}

/* Of blocks that begin at each line of the caches, or at every second one, fourth one and so on. */
TEST(slabs_of_classes_that_share_a_part_of_the_caches_have_colours)
{
    static const struct {
        size_t bytes;
        unsigned lines;
    } expected[] = {{64, 1}, {112, 1}, {128, 2}, {192, 1}, {256, 4}, {384, 2}, {512, 8}, {1024, 16}, {2048, 1}};

    culet_size_class_setup();
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        unsigned klass = culet_size_class(expected[i].bytes);
        CHECK_EQUAL(culet_classes[klass].colours + 1u, expected[i].lines);
        CHECK_EQUAL(culet_classes[klass + CULET_SIZES].colours, 0);
    }
}

TEST(aligned_classes_are_aligned_and_the_smallest_and_take_no_more_than_pages)
{
    culet_size_class_setup();
    for (size_t alignment = CULET_ALIGNMENT; alignment <= 2 * CULET_PAGE; alignment *= 2)
        for (size_t bytes = 0; bytes <= CULET_SMALL_MAX + 1; bytes++) {
            unsigned expected = 0, klass = culet_size_class_aligned(bytes, alignment);
            size_t pages = (bytes / CULET_PAGE + (bytes % CULET_PAGE || !bytes)) * CULET_PAGE;
            if (bytes <= CULET_SMALL_MAX && alignment <= CULET_PAGE)
                for (expected = culet_size_class(bytes ? bytes : 1); culet_classes[expected].size % alignment;)
                    if (++expected > CULET_SIZES) {
                        expected = 0;
                        break;
                    }
            /* Blocks of the other set may begin at any cache line. */
            if (expected && alignment > CULET_CACHE_LINE)
                expected += CULET_SIZES;
            if (culet_classes[expected].size > pages)
                expected = 0;
            CHECK(klass == expected, "%zu bytes at %zu: class %u, expected %u", bytes, alignment, klass, expected);
        }
}

CHECK_MAIN
