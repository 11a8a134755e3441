/* Memory for descriptors: aligned, zero when new, reused for its own kind only, readable while it is spare. */
#include "meta.h"
#include "check.h"
#include "resident.h"

static const size_t sizes[CULET_META_KINDS] = {
    [CULET_META_SLAB] = sizeof(struct culet_slab),
    [CULET_META_LARGE] = sizeof(struct culet_large),
    [CULET_META_SEGMENT] = sizeof(struct culet_segment),
    [CULET_META_ARENA] = sizeof(struct culet_arena),
};

TEST(descriptors_are_aligned_zero_and_apart)
{
    unsigned char *got[4 * 200];

    for (unsigned i = 0; i < 4 * 200; i++) {
        enum culet_meta kind = i % CULET_META_KINDS;
        got[i] = culet_meta_get(kind);
        CHECK(got[i], "no memory");
        CHECK((uintptr_t)got[i] % 64 == 0, "%p is not aligned to a cache line", (void *)got[i]);
        for (size_t at = 0; at < sizes[kind]; at++)
            CHECK(got[i][at] == 0, "byte %zu of a new descriptor of kind %u", at, kind);
        memset(got[i], (int)(i % 251 + 1), sizes[kind]);
    }
    for (unsigned i = 0; i < 4 * 200; i++)
        for (size_t at = 0; at < sizes[i % CULET_META_KINDS]; at++)
            CHECK(got[i][at] == i % 251 + 1, "descriptors overlap");
    CHECK(culet_meta_bytes() > 0 && culet_meta_bytes() % 65536 == 0, "%zu bytes", culet_meta_bytes());
}

TEST(spare_descriptors_serve_their_own_kind)
{
    void *slab = culet_meta_get(CULET_META_SLAB), *second = culet_meta_get(CULET_META_SLAB);
    size_t bytes = culet_meta_bytes();

    culet_meta_put(CULET_META_SLAB, slab);
    culet_meta_put(CULET_META_SLAB, second);
    for (enum culet_meta kind = 0; kind < CULET_META_KINDS; kind++)
        if (kind != CULET_META_SLAB) {
            void *other = culet_meta_get(kind);
            CHECK(other && other != slab && other != second, "a slab's descriptor became kind %u", kind);
        }
    CHECK(culet_meta_get(CULET_META_SLAB) == second, "the last spare one comes first");
    CHECK(culet_meta_get(CULET_META_SLAB) == slab, "the spare one is used");
    CHECK_EQUAL(culet_meta_bytes(), bytes);
}

/* Late readers read a spare descriptor's span and bitmaps. */
TEST(late_readers_find_descriptors_unchanged)
{
    struct culet_slab *slab = culet_meta_get(CULET_META_SLAB);
    struct culet_large *large = culet_meta_get(CULET_META_LARGE);

    slab->span.start = 0x1000;
    slab->span.kind = CULET_SLAB;
    slab->span.klass = 3;
    slab->unit[0].free = 7;
    slab->unit[15].remote = 9;
    culet_meta_put(CULET_META_SLAB, slab);
    CHECK(slab->span.start == 0x1000 && slab->span.kind == CULET_SLAB && slab->span.klass == 3 &&
              slab->unit[0].free == 7 && slab->unit[15].remote == 9,
          "a spare slab's descriptor was written to");

    large->span.start = 0x2000;
    large->span.kind = CULET_HUGE;
    large->bytes = 4096;
    culet_meta_put(CULET_META_LARGE, large);
    CHECK(large->span.start == 0x2000 && large->span.kind == CULET_HUGE && large->bytes == 4096,
          "a spare large block's descriptor was written to");
}

TEST(refused_memory_gives_null_and_later_works)
{
    void *first = culet_meta_get(CULET_META_ARENA);
    unsigned got = 0;

    CHECK(first, "no memory");
    culet_os_refuse = resident_refuse_all;
    while (culet_meta_get(CULET_META_ARENA))
        got++;
    CHECK(got < 65536 / sizeof(struct culet_arena), "%u descriptors out of one chunk", got + 1);
    culet_meta_put(CULET_META_ARENA, first);
    CHECK(culet_meta_get(CULET_META_ARENA) == first, "a spare one needs no memory");
    CHECK(!culet_meta_get(CULET_META_ARENA), "a descriptor out of nothing");
    culet_os_refuse = NULL;
    CHECK(culet_meta_get(CULET_META_ARENA), "no memory");
}

CHECK_MAIN
