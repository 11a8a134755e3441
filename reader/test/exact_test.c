/* The figures of a heap equal malloc's own, to the byte. */
#define _GNU_SOURCE
#include "reader.h"

static const char *const modes[] = {"", "--stop", "--live"};

static void check_mode(const struct target *target, const char *mode)
{
    struct result result = read_complete(mode, target->pid);
    uint64_t used = number_of(&result, "malloc", 0, "used_bytes"),
             cached = number_of(&result, "malloc", 0, "tcache_bytes");
    CHECK_EQUAL(used + cached, printed(target, "uordblks"));
    CHECK_EQUAL(number_of(&result, "malloc", 0, "free_resident_bytes") +
                    number_of(&result, "malloc", 0, "free_returned_bytes"),
                printed(target, "fordblks") + cached);
    CHECK_EQUAL(number_of(&result, "malloc", 0, "mmapped_bytes"), printed(target, "hblkhd"));
    CHECK_EQUAL(number_of(&result, "malloc", 0, "mmapped_chunks"), printed(target, "hblks"));
    CHECK_EQUAL(number_of(&result, "malloc", 0, "fastbin_bytes"), printed(target, "fsmblks"));
    CHECK(!contains(&result, "{\"kind\":\"problem\""), "there is a problem with a sound heap: %.300s",
          object(&result, "problem", 0));
}

static void check_heap(const char *command)
{
    struct target target = start_frozen(command);

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        check_mode(&target, modes[i]);
    end(&target);
}

TEST(one_thread)
{
    check_heap("heap mixed 1 30");
}
TEST(twenty_threads)
{
    check_heap("heap mixed 20 60");
}
TEST(small_blocks)
{
    check_heap("heap small 4 20");
}
TEST(large_blocks)
{
    check_heap("heap large 4 60");
}
TEST(aligned_blocks)
{
    check_heap("heap aligned 3 8");
}
TEST(replaced_blocks)
{
    check_heap("heap churned 8 20");
}
TEST(after_a_trim)
{
    check_heap("heap trimmed 4 30");
}
TEST(others_use_brk)
{
    check_heap("heap gaps 2 20");
}
TEST(brk_fails)
{
    check_heap("heap nobrk 2 15");
}
TEST(linked_statically)
{
    check_heap("static_heap mixed 3 15");
}

/* Resident pages of chunks too long for one slice. */
TEST(vast_chunks)
{
    struct target target = start_frozen("vast");

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        check_mode(&target, modes[i]);
        struct result result = read_process(modes[i], target.pid);
        uint64_t used = number_of(&result, "malloc", 0, "used_resident_bytes"),
                 vacant = number_of(&result, "malloc", 0, "free_resident_bytes");
        CHECK(used >= 3 << 20 && used < (3 << 20) + (1 << 19), "%lu used bytes are in memory", (unsigned long)used);
        CHECK(vacant >= 9 << 20 && vacant < (9 << 20) + (1 << 19), "%lu free bytes are in memory",
              (unsigned long)vacant);
        uint64_t trim = number_of(&result, "malloc", 0, "trim_bytes");
        CHECK(trim <= vacant && trim + (1 << 17) > vacant, "%lu bytes are predicted for a trim", (unsigned long)trim);
    }
    end(&target);
}

TEST(one_arena_for_all)
{
    setenv("MALLOC_ARENA_MAX", "1", 1);
    check_heap("heap mixed 8 20");
}

TEST(two_arenas)
{
    setenv("MALLOC_ARENA_MAX", "2", 1);
    check_heap("heap mixed 8 20");
}

TEST(gigabytes)
{
    if (!getenv("CULET_TEST_ALL")) {
        CHECK(true, "for test-all");
        return;
    }
    check_heap("heap mixed 20 2000");
    check_heap("heap small 20 1000");
}

/* The bytes in tcaches are exact: freed blocks of an otherwise unused size. */
TEST(caches_of_threads)
{
    struct target target = start_frozen("caches");
    struct result before = read_process("--stop", target.pid), after;
    uint64_t cached;

    kill(target.pid, SIGCONT);
    read_line(&target);
    cached = strtoull(target.line + strlen("cached "), NULL, 10);
    read_line(&target);
    await_state(target.pid, 'T');
    after = read_process("--stop", target.pid);
    CHECK_EQUAL(number_of(&after, "malloc", 0, "tcache_bytes") - number_of(&before, "malloc", 0, "tcache_bytes"),
                cached);
    check_mode(&target, "");
    check_mode(&target, "--live");
    end(&target);
}

/* --max-chunks leaves out the blocks. */
TEST(max_chunks)
{
    struct target target = start_frozen("heap small 2 10");
    struct result with = read_complete("--stop", target.pid),
                  without = read_process("--stop --max-chunks 10", target.pid);
    check_complete(&without);
    CHECK(with.bytes > without.bytes + number_of(&with, "malloc", 0, "chunks"), "%zu bytes with and %zu without chunks",
          with.bytes, without.bytes);
    end(&target);
}

/* The predicted effect of malloc_trim(0) is within 2 % of the real one. */
TEST(predicts_trim)
{
    struct target target = start_frozen("trim");
    struct result result = read_process("--stop", target.pid);
    uint64_t predicted = number_of(&result, "malloc", 0, "trim_bytes"), before, after;
    uint64_t arenas = number_of(&result, "malloc", 0, "arenas"), parts = 0;

    for (unsigned i = 0; i < arenas; i++)
        parts += number_of(&result, "arena", i, "trim_bytes");
    CHECK_EQUAL(parts, predicted);
    before = figure(target.pid, "smaps_rollup", "Rss:");
    kill(target.pid, SIGCONT);
    read_line(&target);
    await_state(target.pid, 'T');
    after = figure(target.pid, "smaps_rollup", "Rss:");
    uint64_t given = before - after, off = given > predicted ? given - predicted : predicted - given;
    CHECK(off <= given / 50 && given > (1 << 20), "%lu bytes were predicted, %lu given back", (unsigned long)predicted,
          (unsigned long)given);
    end(&target);
}

CHECK_MAIN
