/* api.c - the allocation functions, as the standards and glibc define them. Runs on culet and on glibc's allocator, so
 * the expectations themselves are tested. */
#define _GNU_SOURCE
#include "programs.h"

#include <limits.h>

#define TOO_MUCH ((size_t)PTRDIFF_MAX + 1)
#define MEBIBYTE ((size_t)1 << 20)

static const size_t sizes[] = {
    0,     1,     8,     15,    16,     17,     24,           63,       64,           65,           100,
    511,   512,   513,   1008,  1024,   1025,   2000,         4095,     4096,         4097,         10000,
    32767, 32768, 32769, 65536, 100000, 262144, MEBIBYTE - 1, MEBIBYTE, MEBIBYTE + 1, 3 * MEBIBYTE, 9 * MEBIBYTE + 123};
#define SIZES (sizeof sizes / sizeof *sizes)

/* Hides where a size comes from: the compiler warns of sizes that are too large. */
static size_t hidden(size_t n)
{
    __asm__ volatile("" : "+r"(n));
    return n;
}

static bool aligned_to(const void *p, size_t alignment)
{
    return (uintptr_t)p % alignment == 0;
}

TEST(malloc_gives_aligned_writable_blocks)
{
    void *block[SIZES];

    for (size_t i = 0; i < SIZES; i++) {
        block[i] = malloc(sizes[i]);
        CHECK(block[i] != NULL, "malloc(%zu)", sizes[i]);
        CHECK(aligned_to(block[i], 16), "malloc(%zu) returned %p", sizes[i], block[i]);
        CHECK(malloc_usable_size(block[i]) >= sizes[i], "usable size of malloc(%zu)", sizes[i]);
        fill(block[i], (int)i + 1, malloc_usable_size(block[i]));
    }
    for (size_t i = 0; i < SIZES; i++) {
        CHECK(filled(block[i], (int)i + 1, malloc_usable_size(block[i])), "a neighbour wrote into malloc(%zu)",
              sizes[i]);
        free(block[i]);
    }
}

TEST(malloc_of_nothing_gives_distinct_blocks)
{
    void *a = malloc(0), *b = malloc(0), *c = calloc(0, 8), *d = calloc(8, 0);

    CHECK(a && b && c && d, "a null pointer");
    CHECK(a != b && b != c && c != d && a != c && a != d && b != d, "the same block twice");
    free(a);
    free(b);
    free(c);
    free(d);
}

TEST(too_much_is_refused_with_enomem)
{
    const size_t much[] = {TOO_MUCH, TOO_MUCH + 4096, SIZE_MAX - 4096, SIZE_MAX - 15, SIZE_MAX, PTRDIFF_MAX};

    for (size_t i = 0; i < sizeof much / sizeof *much; i++) {
        errno = 0;
        CHECK(malloc(hidden(much[i])) == NULL, "malloc(%zu)", much[i]);
        CHECK_EQUAL(errno, ENOMEM);
        errno = 0;
        CHECK(calloc(1, hidden(much[i])) == NULL, "calloc(1, %zu)", much[i]);
        CHECK_EQUAL(errno, ENOMEM);
        errno = 0;
        CHECK(realloc(NULL, hidden(much[i])) == NULL, "realloc(NULL, %zu)", much[i]);
        CHECK_EQUAL(errno, ENOMEM);
        errno = 0;
        CHECK(memalign(64, hidden(much[i])) == NULL, "memalign(64, %zu)", much[i]);
        CHECK_EQUAL(errno, ENOMEM);
        errno = 0;
        CHECK(memalign(1 << 20, hidden(much[i])) == NULL, "memalign(1 MiB, %zu)", much[i]);
        CHECK_EQUAL(errno, ENOMEM);
        errno = 0;
        CHECK(aligned_alloc(32, hidden(much[i])) == NULL, "aligned_alloc(32, %zu)", much[i]);
        CHECK_EQUAL(errno, ENOMEM);
        errno = 0;
        CHECK(valloc(hidden(much[i])) == NULL, "valloc(%zu)", much[i]);
        CHECK_EQUAL(errno, ENOMEM);
        errno = 0;
        CHECK(pvalloc(hidden(much[i])) == NULL, "pvalloc(%zu)", much[i]);
        CHECK_EQUAL(errno, ENOMEM);
    }
}

TEST(calloc_overflow_is_refused)
{
    const size_t pairs[][2] = {{SIZE_MAX, 2},
                               {2, SIZE_MAX},
                               {SIZE_MAX / 2 + 1, 2},
                               {(size_t)1 << 32, (size_t)1 << 32},
                               {((size_t)1 << 32) + 1, (size_t)1 << 32},
                               {SIZE_MAX, SIZE_MAX}};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        errno = 0;
        CHECK(calloc(hidden(pairs[i][0]), hidden(pairs[i][1])) == NULL, "calloc(%zu, %zu)", pairs[i][0], pairs[i][1]);
        CHECK_EQUAL(errno, ENOMEM);
        errno = 0;
        CHECK(reallocarray(NULL, hidden(pairs[i][0]), hidden(pairs[i][1])) == NULL, "reallocarray(NULL, %zu, %zu)",
              pairs[i][0], pairs[i][1]);
        CHECK_EQUAL(errno, ENOMEM);
    }
}

TEST(calloc_gives_zeros_where_others_wrote)
{
    for (size_t i = 0; i < SIZES; i++) {
        void *block[20];
        for (int k = 0; k < 20; k++) {
            block[k] = malloc(sizes[i]);
            CHECK(block[k] != NULL, "malloc(%zu)", sizes[i]);
            fill(block[k], 0xa5, malloc_usable_size(block[k]));
        }
        for (int k = 0; k < 20; k++)
            free(block[k]);
        for (int k = 0; k < 20; k++) {
            block[k] = calloc(1, sizes[i]);
            CHECK(block[k] != NULL, "calloc(1, %zu)", sizes[i]);
            CHECK(filled(block[k], 0, sizes[i]), "calloc(1, %zu) is not zero", sizes[i]);
        }
        for (int k = 0; k < 20; k++)
            free(block[k]);
    }
    char *block = calloc(7, 13);
    CHECK(block && filled(block, 0, 91), "calloc(7, 13)");
    free(block);
}

TEST(realloc_keeps_contents)
{
    for (size_t i = 0; i < SIZES; i++)
        for (size_t k = 0; k < SIZES; k++) {
            size_t least = sizes[i] < sizes[k] ? sizes[i] : sizes[k];
            if (!sizes[k])
                continue;
            void *block = malloc(sizes[i]);
            CHECK(block != NULL, "malloc(%zu)", sizes[i]);
            fill(block, 0x3c, sizes[i]);
            block = realloc(block, sizes[k]);
            CHECK(block != NULL, "realloc from %zu to %zu", sizes[i], sizes[k]);
            CHECK(aligned_to(block, 16), "realloc from %zu to %zu returned %p", sizes[i], sizes[k], block);
            CHECK(filled(block, 0x3c, least), "realloc from %zu to %zu lost bytes", sizes[i], sizes[k]);
            CHECK(malloc_usable_size(block) >= sizes[k], "realloc from %zu to %zu", sizes[i], sizes[k]);
            fill(block, 0x11, sizes[k]);
            free(block);
        }
}

TEST(realloc_grows_and_shrinks_step_by_step)
{
    unsigned char *block = NULL;
    size_t held = 0;

    for (size_t bytes = 1; bytes < 20 * MEBIBYTE; bytes += bytes / 3 + 1) {
        block = realloc(block, bytes);
        CHECK(block && (held == 0 || (filled(block, 0x77, held))), "growing to %zu", bytes);
        fill(block, 0x77, bytes);
        held = bytes;
    }
    for (size_t bytes = held; bytes > 1; bytes -= bytes / 4 + 1) {
        block = realloc(block, bytes);
        CHECK(block && filled(block, 0x77, bytes), "shrinking to %zu", bytes);
    }
    free(block);
}

TEST(realloc_of_null_allocates_and_to_nothing_frees)
{
    void *block = realloc(NULL, 100);

    CHECK(block != NULL, "realloc(NULL, 100)");
    fill(block, 1, 100);
    CHECK(realloc(block, 0) == NULL, "realloc(block, 0)");
    block = realloc(NULL, 0);
    CHECK(block != NULL, "realloc(NULL, 0)");
    free(block);
    /* Were the block not freed, this would take 10 GB. */
    for (int i = 0; i < 1000; i++)
        CHECK(realloc(malloc(10 * MEBIBYTE), 0) == NULL, "realloc(block, 0)");
}

TEST(failing_realloc_leaves_the_block)
{
    for (size_t i = 0; i < SIZES; i++) {
        void *block = malloc(sizes[i]), *refused;
        CHECK(block != NULL, "malloc(%zu)", sizes[i]);
        fill(block, 0x42, sizes[i]);
        errno = 0;
        refused = realloc(block, hidden(TOO_MUCH));
        CHECK(refused == NULL && errno == ENOMEM, "realloc from %zu to too much: errno %d", sizes[i], errno);
        errno = 0;
        refused = realloc(block, hidden((size_t)1 << 60));
        CHECK(refused == NULL && errno == ENOMEM, "realloc from %zu to an exbibyte: errno %d", sizes[i], errno);
        errno = 0;
        refused = reallocarray(block, hidden(SIZE_MAX / 2), 4);
        CHECK(refused == NULL && errno == ENOMEM, "reallocarray of %zu: errno %d", sizes[i], errno);
        CHECK(filled(block, 0x42, sizes[i]), "the block of %zu changed", sizes[i]);
        free(block);
    }
}

TEST(reallocarray_multiplies)
{
    void *block = reallocarray(NULL, 100, 30);

    CHECK(block && malloc_usable_size(block) >= 3000, "reallocarray(NULL, 100, 30)");
    fill(block, 5, 3000);
    block = reallocarray(block, 1000, 30);
    CHECK(block && malloc_usable_size(block) >= 30000 && filled(block, 5, 3000), "reallocarray to 30000");
    free(block);
}

TEST(every_alignment)
{
    for (size_t alignment = 1; alignment <= 8 * MEBIBYTE; alignment *= 2)
        for (size_t i = 0; i < SIZES; i++) {
            void *a = memalign(alignment, sizes[i]), *b = aligned_alloc(alignment, sizes[i]), *c = NULL;
            CHECK(a && aligned_to(a, alignment) && aligned_to(a, 16), "memalign(%zu, %zu) returned %p", alignment,
                  sizes[i], a);
            CHECK(b && aligned_to(b, alignment), "aligned_alloc(%zu, %zu) returned %p", alignment, sizes[i], b);
            if (alignment >= sizeof(void *)) {
                CHECK_EQUAL(posix_memalign(&c, alignment, sizes[i]), 0);
                CHECK(c && aligned_to(c, alignment), "posix_memalign(%zu, %zu) returned %p", alignment, sizes[i], c);
                fill(c, 3, malloc_usable_size(c));
            }
            CHECK(malloc_usable_size(a) >= sizes[i] && malloc_usable_size(b) >= sizes[i], "usable sizes");
            fill(a, 1, malloc_usable_size(a));
            fill(b, 2, malloc_usable_size(b));
            CHECK(filled(a, 1, sizes[i]) && filled(b, 2, sizes[i]) && (!c || filled(c, 3, sizes[i])),
                  "blocks overlap at alignment %zu, size %zu", alignment, sizes[i]);
            a = realloc(a, sizes[i] + 1000);
            CHECK(a && filled(a, 1, sizes[i]), "realloc of memalign(%zu, %zu)", alignment, sizes[i]);
            free(a);
            free(b);
            free(c);
        }
}

TEST(memalign_rounds_the_alignment_up)
{
    const size_t odd[][2] = {{0, 16}, {3, 16}, {24, 32}, {48, 64}, {100, 128}, {4097, 8192}};

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        void *block = memalign(hidden(odd[i][0]), 100);
        CHECK(block && aligned_to(block, odd[i][1]), "memalign(%zu, 100) returned %p", odd[i][0], block);
        free(block);
    }
    errno = 0;
    CHECK(memalign(hidden(SIZE_MAX / 2 + 2), 100) == NULL, "memalign to more than half of the address space");
    CHECK_EQUAL(errno, EINVAL);
}

TEST(posix_memalign_leaves_the_pointer_on_error)
{
    const size_t wrong[] = {0, 1, 2, 3, 4, 12, 24, 48, 100, 4095};
    void *mark = &mark, *block = mark;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_EQUAL(posix_memalign(&block, hidden(wrong[i]), 100), EINVAL);
        CHECK(block == mark, "posix_memalign(%zu) wrote the pointer", wrong[i]);
    }
    CHECK_EQUAL(posix_memalign(&block, 64, hidden(TOO_MUCH)), ENOMEM);
    CHECK(block == mark, "posix_memalign wrote the pointer");
    CHECK_EQUAL(posix_memalign(&block, (size_t)1 << 40, hidden(SIZE_MAX - 4096)), ENOMEM);
    CHECK(block == mark, "posix_memalign wrote the pointer");
}

TEST(valloc_and_pvalloc_align_to_pages)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t i = 0; i < SIZES; i++) {
        void *a = valloc(sizes[i]), *b = pvalloc(sizes[i]);
        CHECK(a && aligned_to(a, page), "valloc(%zu) returned %p", sizes[i], a);
        CHECK(b && aligned_to(b, page), "pvalloc(%zu) returned %p", sizes[i], b);
        CHECK(malloc_usable_size(b) >= (sizes[i] + page - 1) / page * page, "pvalloc(%zu) was not rounded up",
              sizes[i]);
        free(a);
        free(b);
    }
}

TEST(success_and_free_leave_errno)
{
    void *block[SIZES];

    free(NULL);
    for (int round = 0; round < 3; round++) {
        errno = EXDEV;
        for (size_t i = 0; i < SIZES; i++) {
            block[i] = malloc(sizes[i]);
            CHECK(block[i] && errno == EXDEV, "malloc(%zu) set errno to %d", sizes[i], errno);
        }
        for (size_t i = 0; i < SIZES; i++) {
            free(block[i]);
            CHECK(errno == EXDEV, "free of %zu set errno to %d", sizes[i], errno);
        }
        errno = EXDEV;
        free(NULL);
        CHECK_EQUAL(errno, EXDEV);
    }
}

TEST(usable_size_of_null)
{
    CHECK_EQUAL(malloc_usable_size(NULL), 0);
}

TEST(mallopt_takes_the_known_parameters)
{
    CHECK_EQUAL(mallopt(M_ARENA_MAX, 2), 1);
    CHECK_EQUAL(mallopt(M_ARENA_TEST, 2), 1);
    CHECK_EQUAL(mallopt(M_TRIM_THRESHOLD, 128 * 1024), 1);
    CHECK_EQUAL(mallopt(M_TOP_PAD, 64 * 1024), 1);
    CHECK_EQUAL(mallopt(M_MMAP_THRESHOLD, 256 * 1024), 1);
    CHECK_EQUAL(mallopt(M_MMAP_MAX, 1000), 1);
    CHECK_EQUAL(mallopt(M_MXFAST, 64), 1);
    void *block = malloc(1000);
    CHECK(block != NULL, "malloc after mallopt");
    free(block);
}

#define MANY 20000

TEST(mallinfo_follows_the_heap)
{
    static void *block[MANY];
    if (!on_culet() && !dlsym(RTLD_DEFAULT, "mallinfo2")) {
        CHECK(true, "glibc before 2.33 has no mallinfo2");
        return;
    }
    struct heap_info start = heap_info(), now;

    for (int i = 0; i < MANY; i++)
        block[i] = malloc(200);
    now = heap_info();
    CHECK(now.uordblks >= start.uordblks + MANY * 200, "uordblks rose from %zu to %zu only", start.uordblks,
          now.uordblks);
    CHECK(now.uordblks <= start.uordblks + MANY * 240, "uordblks rose from %zu to %zu", start.uordblks, now.uordblks);
    CHECK_EQUAL(now.uordblks + now.fordblks, now.arena);
    CHECK_EQUAL(now.hblks, start.hblks);
    for (int i = 0; i < MANY; i++)
        free(block[i]);
    now = heap_info();
    CHECK(now.uordblks <= start.uordblks + 100000, "uordblks fell to %zu only, from %zu at first", now.uordblks,
          start.uordblks);
    CHECK_EQUAL(now.uordblks + now.fordblks, now.arena);

    void *huge = malloc(64 * MEBIBYTE);
    now = heap_info();
    CHECK_EQUAL(now.hblks, start.hblks + 1);
    CHECK(now.hblkhd >= start.hblkhd + 64 * MEBIBYTE, "hblkhd is %zu", now.hblkhd);
    CHECK(now.hblkhd <= start.hblkhd + 64 * MEBIBYTE + 131072, "hblkhd is %zu", now.hblkhd);
    free(huge);
    now = heap_info();
    CHECK_EQUAL(now.hblks, start.hblks);
    CHECK_EQUAL(now.hblkhd, start.hblkhd);
}

TEST(mallinfo_agrees_with_mallinfo2)
{
    struct narrow { /* mallinfo's layout; newer headers call the function itself deprecated */
        int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
    } (*ask)(void) = (struct narrow(*)(void))dlsym(RTLD_DEFAULT, "mallinfo");

    CHECK(ask != NULL, "there is no mallinfo");
    void *volatile block = malloc(100);
    struct narrow narrow = ask();
    CHECK_EQUAL(narrow.uordblks + narrow.fordblks, narrow.arena);
    CHECK(narrow.uordblks > 0, "uordblks is %d", narrow.uordblks);
    if (dlsym(RTLD_DEFAULT, "mallinfo2")) {
        struct heap_info wide = heap_info();
        CHECK_EQUAL(narrow.arena, wide.arena);
        CHECK_EQUAL(narrow.uordblks, wide.uordblks);
        CHECK_EQUAL(narrow.hblkhd, wide.hblkhd);
    }
    free(block);
}

TEST(malloc_trim_returns_whether_memory_went_back)
{
    static void *block[MANY];

    for (int i = 0; i < MANY; i++) {
        block[i] = malloc(1000);
        CHECK(block[i] != NULL, "malloc(1000)");
        fill(block[i], 9, 1000);
    }
    size_t before = smaps_bytes("Rss:");
    for (int i = 0; i < MANY - 1; i++)
        free(block[i]);
    CHECK_EQUAL(malloc_trim(0), 1);
    size_t after = smaps_bytes("Rss:");
    CHECK(after + 15 * MEBIBYTE < before, "resident: %zu before, %zu after", before, after);
    CHECK(filled(block[MANY - 1], 9, 1000), "the remaining block changed");
    free(block[MANY - 1]);
}

/* What `say` writes to stderr. */
static size_t on_stderr(void (*say)(void), char *text, size_t size)
{
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);

    CHECK(file && saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0, "stderr cannot be caught");
    say();
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    size_t got = fread(text, 1, size - 1, file);
    fclose(file);
    text[got] = 0;
    return got;
}

TEST(malloc_stats_goes_to_stderr)
{
    char text[4096];

    CHECK(on_stderr(malloc_stats, text, sizeof text) > 0, "nothing was written");
    CHECK(strstr(text, "in use bytes") != NULL, "it wrote: %s", text);
    CHECK(!on_culet() || strstr(text, "culet") == text, "it wrote: %s", text);
}

TEST(malloc_info_writes_xml)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    CHECK(stream != NULL, "open_memstream");
    CHECK_EQUAL(malloc_info(1, stream), EINVAL);
    CHECK_EQUAL(malloc_info(-1, stream), EINVAL);
    fflush(stream);
    CHECK_EQUAL(size, 0);
    CHECK_EQUAL(malloc_info(0, stream), 0);
    fclose(stream);
    CHECK(strncmp(text, "<malloc version=\"1\"", 19) == 0, "it begins with %.40s", text);
    CHECK(strcmp(text + size - 10, "</malloc>\n") == 0, "it ends with %s", text + size - 10);
    free(text);
}

TEST(sized_frees)
{
    void (*free_sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    void (*free_aligned_sized)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");

    CHECK(!on_culet() || (free_sized && free_aligned_sized), "the C23 functions are missing");
    if (!free_sized || !free_aligned_sized)
        return;
    free_sized(NULL, 0);
    free_sized(NULL, 100);
    free_aligned_sized(NULL, 64, 100);
    for (size_t i = 0; i < SIZES; i++) {
        void *a = malloc(sizes[i]), *b = calloc(1, sizes[i]), *c = realloc(malloc(10), sizes[i] + 1);
        CHECK(a && b && c, "blocks of %zu", sizes[i]);
        free_sized(a, sizes[i]);
        free_sized(b, sizes[i]);
        free_sized(c, sizes[i] + 1);
        for (size_t less = sizes[i]; less; less = less / 8 * 7) {
            a = realloc(malloc(sizes[i]), less);
            CHECK(a != NULL, "a block of %zu, resized to %zu", sizes[i], less);
            free_sized(a, less);
        }
        for (size_t alignment = 16; alignment <= 65536; alignment *= 4) {
            a = aligned_alloc(alignment, sizes[i]);
            CHECK(a != NULL, "aligned_alloc(%zu, %zu)", alignment, sizes[i]);
            free_aligned_sized(a, alignment, sizes[i]);
        }
    }
}

TEST(libc_and_the_program_share_one_heap)
{
    char *a = strdup("a text of libc's"), *b = NULL, *line = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&b, &size);

    CHECK(a && malloc_usable_size(a) >= 17, "strdup");
    CHECK(stream && fprintf(stream, "%0*d\n", 5000, 7) == 5001 && fclose(stream) == 0, "open_memstream");
    CHECK(malloc_usable_size(b) > 5001, "the stream's block");
    stream = fmemopen(b, size, "r");
    size_t room = 0;
    CHECK(stream && getline(&line, &room, stream) == 5001, "getline");
    CHECK(malloc_usable_size(line) > 5001, "the line's block");
    fclose(stream);
    line = realloc(line, 100000);
    CHECK(line && strcmp(line, b) == 0, "realloc of libc's block");
    free(line);
    free(b);
    free(a);
}

CHECK_MAIN
