/* The heap's statistics, as libc's functions report them. */
#include "check.h"
#include "culet.h"
#include "heap.h"
#include "heap_counts.h"
#include "size_class.h"
#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/auxv.h>
#include <unistd.h>

static void check_balance(void)
{
    struct mallinfo2 info = culet_mallinfo2();
    struct mallinfo narrow = culet_mallinfo();

    CHECK_EQUAL(info.arena, info.uordblks + info.fordblks);
    CHECK_EQUAL(narrow.uordblks, info.uordblks);
    CHECK_EQUAL(narrow.hblkhd, info.hblkhd);
    CHECK_EQUAL(narrow.arena, info.arena);
    CHECK(info.keepcost <= info.fordblks, "keepcost %zu, fordblks %zu", info.keepcost, info.fordblks);
    CHECK_EQUAL(info.usmblks + info.fsmblks + info.smblks, 0);
}

TEST(bytes_in_use_are_counted_exactly)
{
    static const size_t sizes[] = {0, 1, 16, 17, 1000, 1025, 32768, 32769, 1 << 20, (1 << 20) + 1, 9 << 20};
    void *block[sizeof sizes / sizeof *sizes];
    size_t expected = 0, huge = 0;

    CHECK_EQUAL(culet_mallinfo2().uordblks, 0);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        block[i] = culet_malloc(sizes[i]);
        CHECK(block[i], "no memory");
        size_t usable = culet_malloc_usable_size(block[i]);
        *(sizes[i] > CULET_LARGE_MAX ? &huge : &expected) += usable;
        CHECK_EQUAL(culet_mallinfo2().uordblks, expected);
        CHECK_EQUAL(culet_mallinfo2().hblkhd, huge);
        CHECK_EQUAL(culet_mallinfo2().hblks, sizes[i] > CULET_LARGE_MAX ? i - 8 : 0);
        check_balance();
    }
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t usable = culet_malloc_usable_size(block[i]);
        *(sizes[i] > CULET_LARGE_MAX ? &huge : &expected) -= usable;
        culet_free(block[i]);
        CHECK_EQUAL(culet_mallinfo2().uordblks, expected);
        CHECK_EQUAL(culet_mallinfo2().hblkhd, huge);
        check_balance();
    }
}

TEST(mallinfo_saturates_at_the_largest_int)
{
    void *block = culet_malloc((size_t)5 << 30);

    if (!block) /* a machine without overcommit */
        CHECK(errno == ENOMEM, "errno %d", errno);
    else
        CHECK_EQUAL(culet_mallinfo().hblkhd, 0x7fffffff);
    culet_free(block);
    CHECK_EQUAL(culet_mallinfo().hblkhd, 0);
}

TEST(malloc_info_writes_the_classes_and_reports_a_full_disk)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);

    culet_malloc(100);
    CHECK(stream, "no stream");
    CHECK_EQUAL(culet_malloc_info(0, stream), 0);
    fclose(stream);
    CHECK(strstr(text, "<size from=\"97\" to=\"112\" slabs=\"1\" used=\"1\""), "no line for the block of 100 bytes");
    free(text);
    stream = fopen("/dev/full", "w");
    CHECK(stream, "no /dev/full");
    setvbuf(stream, NULL, _IONBF, 0);
    CHECK(culet_malloc_info(0, stream) != 0, "a full disk went unnoticed");
    fclose(stream);
}

TEST(mallopt_refuses_what_culet_does_not_do)
{
    CHECK_EQUAL(culet_mallopt(-6, 0xa5), 0); /* M_PERTURB */
    CHECK_EQUAL(culet_mallopt(12345, 1), 0);
}

/* ---- culet_stats ---- */

static struct culet_stats ask(void)
{
    struct culet_stats stats;

    memset(&stats, 0xee, sizeof stats);
    CHECK_EQUAL(culet_stats(&stats, sizeof stats), 0);
    CHECK_EQUAL(stats.filled_bytes, sizeof stats);
    return stats;
}

/* What stats.h states of a quiet heap; and the same heap counted another way. */
static void check_sums(const struct culet_stats *s)
{
    struct heap_counts other;
    uint64_t used = s->run_bytes, cached = 0, slabs = 0;

    count_heap(&other);
    CHECK_EQUAL(s->classes, CULET_SIZES + 1);
    for (unsigned klass = 0; klass < CULET_STATS_CLASSES; klass++) {
        const struct culet_stats_class *c = &s->class[klass];
        if (klass == 0 || klass >= s->classes) {
            CHECK_EQUAL(c->block_bytes + c->slabs + c->used + c->free + c->cached, 0);
            continue;
        }
        CHECK_EQUAL(c->block_bytes, culet_classes[klass].size);
        const struct bin_counts *plain = &other.bins[klass], *zeroed = &other.bins[klass + CULET_SIZES];
        CHECK_EQUAL(c->slabs, plain->slabs + zeroed->slabs);
        CHECK_EQUAL(c->used, plain->live + zeroed->live);
        CHECK_EQUAL(c->cached, 0);
        CHECK_EQUAL(c->used + c->free + c->cached, c->slabs * culet_classes[klass].count);
        used += c->used * c->block_bytes;
        cached += c->cached * c->block_bytes;
        slabs += c->slabs * culet_classes[klass].pages * CULET_PAGE;
    }
    CHECK_EQUAL(s->used_bytes, used);
    CHECK_EQUAL(s->used_bytes + s->large_bytes, other.used_bytes);
    CHECK_EQUAL(s->cached_bytes, cached);
    CHECK_EQUAL(s->slab_bytes, slabs);
    CHECK_EQUAL(s->heap_bytes, s->used_bytes + s->free_bytes);
    CHECK(s->used_resident_bytes <= s->used_bytes + s->large_bytes, "more is resident than is in use");
    CHECK(s->unused_resident_bytes <= s->free_bytes, "more is resident than is free");
    CHECK_EQUAL(s->heap_bytes, s->slab_bytes + s->run_bytes + s->free_resident_bytes + s->free_returned_bytes);
    CHECK_EQUAL(s->heap_bytes, s->segments * CULET_SEGMENT_BYTES);
    CHECK_EQUAL(s->mapped_bytes, s->heap_bytes + s->large_bytes);
    CHECK_EQUAL(s->mapped_bytes, other.mapped_bytes);
    CHECK_EQUAL(s->descriptor_bytes, other.meta_bytes);
}

TEST(stats_of_a_heap_without_blocks)
{
    struct culet_stats s = ask();

    check_sums(&s);
    CHECK_EQUAL(s.used_bytes + s.heap_bytes + s.large_blocks + s.runs + s.forks + s.purges + s.returned_bytes, 0);
}

TEST(stats_add_up_after_every_step_of_a_random_program)
{
    static void *block[4000];
    uint64_t seed = 7;

    for (unsigned step = 0; step < 40000; step++) {
        unsigned i = (unsigned)(check_random(&seed) % 4000);
        culet_free(block[i]);
        size_t most = check_random(&seed) % 200 ? 3000 : check_random(&seed) % 4 ? 300000 : 3000000;
        block[i] = culet_malloc(check_random(&seed) % most);
        CHECK(block[i], "no memory");
        if (step % 1000 == 0) {
            struct culet_stats s = ask();
            check_sums(&s);
        }
        if (step % 10000 == 0)
            culet_malloc_trim(0);
    }
    for (unsigned i = 0; i < 4000; i++)
        culet_free(block[i]);
    struct culet_stats s = ask();
    check_sums(&s);
    CHECK_EQUAL(s.used_bytes + s.large_blocks + s.runs, 0);
}

TEST(stats_cover_each_kind_of_block)
{
    struct culet_stats before = ask();
    void *small[10], *run = culet_malloc(100000), *large = culet_malloc(5 << 20);
    unsigned klass = culet_size_class(500);

    for (unsigned i = 0; i < 10; i++)
        small[i] = culet_malloc(500);
    struct culet_stats s = ask();
    check_sums(&s);
    CHECK_EQUAL(s.class[klass].used, 10);
    CHECK_EQUAL(s.class[klass].slabs, 1);
    CHECK_EQUAL(s.runs, before.runs + 1);
    CHECK_EQUAL(s.run_bytes, 25 * 4096);
    CHECK_EQUAL(s.large_blocks, 1);
    CHECK_EQUAL(s.large_bytes, 5 << 20);
    CHECK_EQUAL(s.threads, 1);
    CHECK(s.descriptor_bytes > 0, "descriptors without memory");
    for (unsigned i = 0; i < 10; i++)
        culet_free(small[i]);
    culet_free(run);
    culet_free(large);
    s = ask();
    check_sums(&s);
    CHECK_EQUAL(s.class[klass].used + s.runs + s.large_blocks, 0);
    culet_malloc_trim(0);
    s = ask();
    check_sums(&s);
    CHECK_EQUAL(s.cached_bytes, 0);
}

TEST(stats_tell_resident_from_untouched_memory)
{
    size_t sizes[] = {256 << 10, 8 << 20}; /* a large block, a huge one */

    /* The kernel counts by its own pages, also where pagesize.c stands for one with larger pages. */
    if (getauxval(AT_PAGESZ) != (unsigned long)sysconf(_SC_PAGESIZE)) {
        CHECK(ask().used_resident_bytes <= ask().mapped_bytes, "more is resident than mapped");
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        char *block = culet_malloc(sizes[i]);
        CHECK_EQUAL(culet_malloc_trim(0) < 0, 0);
        struct culet_stats before = ask();
        memset(block, 1, sizes[i] / 2);
        struct culet_stats after = ask();
        CHECK_EQUAL(after.used_resident_bytes - before.used_resident_bytes, sizes[i] / 2);
        CHECK_EQUAL(after.unused_resident_bytes, before.unused_resident_bytes);
        culet_free(block);
    }
}

TEST(stats_count_returned_memory)
{
    enum { COUNT = 3000 };
    static void *block[COUNT];

    for (unsigned i = 0; i < COUNT; i++)
        memset(block[i] = culet_malloc(2000), 1, 2000);
    for (unsigned i = 0; i < COUNT; i++)
        if (i % 64) /* some are left, so that pages inside slabs are returned too */
            culet_free(block[i]);
    struct culet_stats before = ask();
    CHECK_EQUAL(culet_malloc_trim(0), 1);
    struct culet_stats after = ask();
    check_sums(&after);
    CHECK(after.purges > before.purges, "purges stayed at %lu", (unsigned long)after.purges);
    CHECK(after.returned_bytes + 64 * 65536 > before.returned_bytes + 4000000, "returned rose from %lu to %lu only",
          (unsigned long)before.returned_bytes, (unsigned long)after.returned_bytes);
    CHECK_EQUAL(after.free_resident_bytes, 0);
    CHECK_EQUAL(culet_malloc_trim(0), 0);
    CHECK_EQUAL(ask().purges, after.purges);
    CHECK_EQUAL(ask().returned_bytes, after.returned_bytes);
}

TEST(stats_count_forks_and_go_on_in_the_child)
{
    culet_malloc(1);
    for (unsigned i = 1; i <= 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            CHECK_EQUAL(ask().forks, i);
            pid_t grandchild = fork();
            if (grandchild == 0) {
                CHECK_EQUAL(ask().forks, i + 1);
                _exit(0);
            }
            check_child(grandchild);
            _exit(0);
        }
        check_child(child);
        CHECK_EQUAL(ask().forks, i);
    }
}

static sem_t begun, over;

static void *live(void *data)
{
    culet_free(culet_malloc(*(size_t *)data));
    sem_post(&begun);
    sem_wait(&over);
    return NULL;
}

TEST(stats_count_threads)
{
    enum { THREADS = 5 };
    size_t bytes = 64;
    pthread_t thread[THREADS];

    sem_init(&begun, 0, 0);
    sem_init(&over, 0, 0);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_create(&thread[i], NULL, live, &bytes), 0);
    for (unsigned i = 0; i < THREADS; i++)
        sem_wait(&begun);
    struct culet_stats s = ask();
    check_sums(&s);
    CHECK_EQUAL(s.threads, THREADS);
    for (unsigned i = 0; i < THREADS; i++)
        sem_post(&over);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    s = ask();
    check_sums(&s);
    CHECK_EQUAL(s.threads, 0);
    CHECK_EQUAL(s.cached_bytes, 0);
}

static void *free_all(void *data)
{
    for (void **block = data; *block; block++)
        culet_free(*block);
    return NULL;
}

/* What another thread freed is free, before and after it is collected. */
TEST(stats_count_remote_frees_as_free)
{
    static void *block[2001];
    unsigned klass = culet_size_class(100);

    for (unsigned i = 0; i < 2000; i++)
        block[i] = culet_malloc(100);
    run_elsewhere(free_all, block + 500);
    struct culet_stats s = ask();
    check_sums(&s);
    CHECK_EQUAL(s.class[klass].used, 500);
    culet_malloc_trim(0);
    s = ask();
    check_sums(&s);
    CHECK_EQUAL(s.class[klass].used, 500);
}

static _Atomic bool enough;

static void *churn(void *data)
{
    static _Thread_local void *block[500];
    uint64_t seed = (uintptr_t)data;

    while (!atomic_load(&enough)) {
        unsigned i = (unsigned)(check_random(&seed) % 500);
        culet_free(block[i]);
        block[i] = culet_malloc(check_random(&seed) % (check_random(&seed) % 50 ? 2000 : 200000));
    }
    for (unsigned i = 0; i < 500; i++)
        culet_free(block[i]);
    return NULL;
}

/* Approximate, but never more than there is. */
TEST(stats_while_other_threads_use_the_heap)
{
    pthread_t thread[2];

    for (uintptr_t i = 0; i < 2; i++)
        CHECK_EQUAL(pthread_create(&thread[i], NULL, churn, (void *)(i + 1)), 0);
    for (unsigned i = 0, rounds = check_rounds(200, 1000); i < rounds; i++) {
        struct culet_stats s = ask();
        CHECK(s.heap_bytes == s.used_bytes + s.free_bytes, "used and free are not the heap");
        CHECK(s.used_bytes <= s.heap_bytes, "more is used than there is");
        for (unsigned klass = 1; klass < s.classes; klass++)
            CHECK(s.class[klass].used + s.class[klass].free + s.class[klass].cached ==
                      s.class[klass].slabs * culet_classes[klass].count,
                  "the blocks of class %u do not add up", klass);
    }
    atomic_store(&enough, true);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    struct culet_stats s = ask();
    check_sums(&s);
    CHECK_EQUAL(s.used_bytes, 0);
}

static void *purge_again_and_again(void *unused)
{
    while (!atomic_load(&enough))
        culet_malloc_trim(0);
    return unused;
}

/* A purge takes free blocks for a while, as a request would. They stay free all the same. */
TEST(stats_during_purges_count_what_is_in_use)
{
    enum { COUNT = 4000, KEPT = COUNT / 40 };
    static void *block[COUNT];
    pthread_t thread;

    atomic_store(&enough, false);
    CHECK_EQUAL(pthread_create(&thread, NULL, purge_again_and_again, NULL), 0);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < COUNT; i++)
            memset(block[i] = culet_malloc(2000), 1, 2000);
        for (unsigned i = 0; i < COUNT; i++)
            if (i % 40)
                culet_free(block[i]);
        CHECK_EQUAL(ask().used_bytes, KEPT * culet_malloc_usable_size(block[0]));
        for (unsigned i = 0; i < COUNT; i += 40)
            culet_free(block[i]);
    }
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
}

TEST(stats_for_callers_that_know_less_or_more)
{
    union {
        struct culet_stats stats;
        unsigned char byte[sizeof(struct culet_stats) + 64];
    } out;
    size_t part = offsetof(struct culet_stats, cached_bytes);

    memset(&out, 0xee, sizeof out);
    errno = 0;
    CHECK(culet_stats(&out.stats, sizeof out.stats.filled_bytes - 1) == -1, "no room, no error");
    CHECK_EQUAL(errno, EINVAL);
    CHECK_EQUAL(out.byte[0], 0xee);
    CHECK_EQUAL(culet_stats(&out.stats, part), 0);
    CHECK_EQUAL(out.stats.filled_bytes, part);
    CHECK_EQUAL(out.byte[part], 0xee);
    CHECK_EQUAL(culet_stats(&out.stats, sizeof out), 0);
    CHECK_EQUAL(out.stats.filled_bytes, sizeof out.stats);
    CHECK_EQUAL(out.byte[sizeof out.stats], 0xee);
}

/* The number after `name="` in the first line of `text` that has `mark`. */
static uint64_t number_in(const char *text, const char *mark, const char *name)
{
    char pattern[64];
    const char *line = strstr(text, mark), *end = line ? strchr(line, '\n') : NULL;

    snprintf(pattern, sizeof pattern, " %s=\"", name);
    const char *at = line ? strstr(line, pattern) : NULL;
    CHECK(at && at < end, "there is no %s for %s in %s", name, mark, text);
    return strtoull(at + strlen(pattern), NULL, 10);
}

TEST(malloc_info_agrees_with_stats)
{
    static const struct {
        const char *mark, *name;
        size_t offset;
    } same[] = {
        {"<total type=\"rest\"", "size", offsetof(struct culet_stats, free_bytes)},
        {"<total type=\"cached\"", "size", offsetof(struct culet_stats, cached_bytes)},
        {"<total type=\"slab\"", "size", offsetof(struct culet_stats, slab_bytes)},
        {"<total type=\"run\"", "count", offsetof(struct culet_stats, runs)},
        {"<total type=\"run\"", "size", offsetof(struct culet_stats, run_bytes)},
        {"<total type=\"mmap\"", "count", offsetof(struct culet_stats, large_blocks)},
        {"<total type=\"mmap\"", "size", offsetof(struct culet_stats, large_bytes)},
        {"<total type=\"free_resident\"", "size", offsetof(struct culet_stats, free_resident_bytes)},
        {"<total type=\"free_returned\"", "size", offsetof(struct culet_stats, free_returned_bytes)},
        {"<total type=\"returned\"", "count", offsetof(struct culet_stats, purges)},
        {"<total type=\"returned\"", "size", offsetof(struct culet_stats, returned_bytes)},
        {"<total type=\"descriptor\"", "size", offsetof(struct culet_stats, descriptor_bytes)},
        {"<system type=\"current\"", "size", offsetof(struct culet_stats, mapped_bytes)},
        {"<threads", "count", offsetof(struct culet_stats, threads)},
        {"<forks", "count", offsetof(struct culet_stats, forks)},
    };
    char *text = NULL, mark[32];
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);

    for (unsigned i = 0; i < 300; i++)
        culet_free(culet_malloc(i * 700)), culet_malloc(i * 37);
    culet_malloc(100000), culet_malloc(3 << 20), culet_malloc_trim(0);
    CHECK_EQUAL(culet_malloc_info(0, stream), 0);
    fclose(stream);
    struct culet_stats s = ask();
    for (unsigned i = 0; i < sizeof same / sizeof *same; i++)
        CHECK_EQUAL(number_in(text, same[i].mark, same[i].name), *(uint64_t *)((char *)&s + same[i].offset));
    CHECK_EQUAL(number_in(text, "<total type=\"used\"", "size"), s.used_bytes + s.large_bytes);
    for (unsigned klass = 1; klass < s.classes; klass++) {
        snprintf(mark, sizeof mark, " to=\"%lu\"", (unsigned long)s.class[klass].block_bytes);
        CHECK((strstr(text, mark) != NULL) == (s.class[klass].slabs > 0), "whether there is a line with%s", mark);
        if (!s.class[klass].slabs)
            continue;
        CHECK_EQUAL(number_in(text, mark, "slabs"), s.class[klass].slabs);
        CHECK_EQUAL(number_in(text, mark, "used"), s.class[klass].used);
        CHECK_EQUAL(number_in(text, mark, "free"), s.class[klass].free);
        CHECK_EQUAL(number_in(text, mark, "cached"), s.class[klass].cached);
    }
    free(text);
}

CHECK_MAIN
