/* The figures of musl's heap equal what the program's own blocks take, to the byte. */
#define _GNU_SOURCE
#include "reader.h"

#include <string.h>

static const char *const modes[] = {"", "--stop", "--live"};
#define MODES (sizeof modes / sizeof *modes)

struct figures {
    uint64_t used, large, large_blocks;
};

/* Besides, the bytes of groups are used, free or metadata, and the kernel has what the regions have. */
static struct figures read_figures(const struct target *target, const char *mode)
{
    struct result result = read_process(mode, target->pid);
    struct figures figures;

    check_complete(&result);
    CHECK(contains(&result, "\"name\":\"musl\""), "musl was not recognized: %.300s", object(&result, "allocator", 0));
    CHECK(contains(&result, "\"level\":\"blocks\""), "musl is read by pages: %.300s", object(&result, "allocator", 0));
    CHECK(!contains(&result, "{\"kind\":\"problem\""), "there is a problem with a sound heap: %.300s",
          object(&result, "problem", 0));
    figures = (struct figures){.used = number_of(&result, "malloc", 0, "used_bytes"),
                               .large = number_of(&result, "malloc", 0, "mmapped_bytes"),
                               .large_blocks = number_of(&result, "malloc", 0, "mmapped_chunks")};
    uint64_t vacant =
        number_of(&result, "malloc", 0, "free_resident_bytes") + number_of(&result, "malloc", 0, "free_returned_bytes");
    uint64_t system = number_of(&result, "arena", 0, "system_bytes"), overhead = system - figures.used - vacant;
    CHECK(figures.used + vacant <= system, "%lu used and %lu free bytes of %lu", (unsigned long)figures.used,
          (unsigned long)vacant, (unsigned long)system);
    uint64_t metadata = number_of(&result, "malloc", 0, "metadata_bytes");
    CHECK(metadata > overhead && (metadata - overhead) % 4096 == 0, "%lu bytes of metadata, of which %lu in groups",
          (unsigned long)metadata, (unsigned long)overhead);
    return figures;
}

static void check_heap(const char *command)
{
    struct target target = start_frozen(command);
    struct figures before[MODES];

    for (size_t i = 0; i < MODES; i++)
        before[i] = read_figures(&target, modes[i]);
    kill(target.pid, SIGCONT);
    read_line(&target);
    await_state(target.pid, 'T');
    for (size_t i = 0; i < MODES; i++) {
        struct figures after = read_figures(&target, modes[i]);
        CHECK_EQUAL(after.used - before[i].used, printed(&target, "used"));
        CHECK_EQUAL(after.large - before[i].large, printed(&target, "large"));
        CHECK_EQUAL(after.large_blocks - before[i].large_blocks, printed(&target, "mappings"));
    }
    CHECK(printed(&target, "live") > 10, "the target has no blocks");
    end(&target);
}

TEST(small_blocks)
{
    check_heap("musl_heap small 8");
}
TEST(mixed_blocks)
{
    check_heap("musl_heap mixed 30");
}
TEST(large_blocks)
{
    check_heap("musl_heap large 60");
}
TEST(replaced_blocks)
{
    check_heap("musl_heap churned 12");
}
TEST(few_blocks_are_left)
{
    check_heap("musl_heap emptied 20");
}
TEST(threads_have_one_heap)
{
    check_heap("musl_heap threads 10");
}
TEST(linked_statically)
{
    check_heap("static_musl_heap mixed 10");
}

TEST(hundreds_of_megabytes)
{
    if (!getenv("CULET_TEST_ALL")) {
        CHECK(true, "for test-all");
        return;
    }
    check_heap("musl_heap mixed 400");
    check_heap("musl_heap churned 200");
}

CHECK_MAIN
