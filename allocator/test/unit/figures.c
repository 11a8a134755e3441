/* The heap's figures, as libc's functions tell them. */
#include "check.h"
#include "culet.h"
#include "heap.h"

#include <errno.h>

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

TEST(what_is_in_use_is_counted_exactly)
{
    static const size_t sizes[] = {0, 1, 16, 17, 1000, 1025, 32768, 32769, 1 << 20, (1 << 20) + 1, 9 << 20};
    void *block[sizeof sizes / sizeof *sizes];
    size_t expected = 0, huge = 0;

    CHECK_EQUAL(culet_mallinfo2().uordblks, 0);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        block[i] = culet_malloc(sizes[i]);
        CHECK(block[i], "no memory");
        size_t usable = culet_malloc_usable_size(block[i]);
        *(sizes[i] > CULET_RUN_MAX ? &huge : &expected) += usable;
        CHECK_EQUAL(culet_mallinfo2().uordblks, expected);
        CHECK_EQUAL(culet_mallinfo2().hblkhd, huge);
        CHECK_EQUAL(culet_mallinfo2().hblks, sizes[i] > CULET_RUN_MAX ? i - 8 : 0);
        check_balance();
    }
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t usable = culet_malloc_usable_size(block[i]);
        *(sizes[i] > CULET_RUN_MAX ? &huge : &expected) -= usable;
        culet_free(block[i]);
        CHECK_EQUAL(culet_mallinfo2().uordblks, expected);
        CHECK_EQUAL(culet_mallinfo2().hblkhd, huge);
        check_balance();
    }
}

TEST(more_than_an_int_holds_is_cut_to_the_greatest_int)
{
    void *block = culet_malloc((size_t)5 << 30);

    if (!block) /* a machine that does not promise memory it has not */
        CHECK(errno == ENOMEM, "errno %d", errno);
    else
        CHECK_EQUAL(culet_mallinfo().hblkhd, 0x7fffffff);
    culet_free(block);
    CHECK_EQUAL(culet_mallinfo().hblkhd, 0);
}

TEST(malloc_info_writes_to_any_stream_and_refuses_options)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);

    culet_malloc(100);
    CHECK(stream, "no stream");
    CHECK_EQUAL(culet_malloc_info(1, stream), EINVAL);
    fflush(stream);
    CHECK_EQUAL(length, 0);
    CHECK_EQUAL(culet_malloc_info(0, stream), 0);
    fclose(stream);
    CHECK(strncmp(text, "<malloc version=\"1\"", 19) == 0, "it begins with %.20s", text);
    CHECK(strcmp(text + length - 10, "</malloc>\n") == 0, "it ends with %s", text + length - 10);
    CHECK(strstr(text, "<size from=\"97\" to=\"112\" slabs=\"1\" used=\"1\""), "no line for the block of 100 bytes");
    free(text);
    stream = fopen("/dev/full", "w");
    CHECK(stream, "no /dev/full");
    setvbuf(stream, NULL, _IONBF, 0);
    CHECK(culet_malloc_info(0, stream) != 0, "a full disk went unnoticed");
    fclose(stream);
}

TEST(mallopt_takes_hints_and_refuses_promises)
{
    for (int parameter = -4; parameter <= -1; parameter++)
        CHECK_EQUAL(culet_mallopt(parameter, 1000), 1);
    CHECK_EQUAL(culet_mallopt(-8, 2), 1);  /* M_ARENA_MAX */
    CHECK_EQUAL(culet_mallopt(1, 64), 1);  /* M_MXFAST */
    CHECK_EQUAL(culet_mallopt(-6, 0xa5), 0); /* M_PERTURB */
    CHECK_EQUAL(culet_mallopt(12345, 1), 0);
}

CHECK_MAIN
