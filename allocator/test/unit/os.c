/* The kernel's calls that do more than pass their arguments on: ranges are returned together, and one that the kernel
 * refuses does not keep the others. */
#define _GNU_SOURCE
#include "check.h"
#include "os.h"

#include <sys/syscall.h>
#include <unistd.h>

#define RANGES 200
#define DONTNEED_LOCKED 24 /* MADV_DONTNEED_LOCKED */

static bool one_in_three(void)
{
    static unsigned calls;

    return calls++ % 3 == 0;
}

/* Every second page of a mapping. */
static char *fill(struct culet_os_range *range, size_t page)
{
    char *start = culet_os_map(2 * RANGES * page);

    CHECK(start, "no memory");
    memset(start, 1, 2 * RANGES * page);
    for (unsigned i = 0; i < RANGES; i++)
        range[i] = (struct culet_os_range){(uintptr_t)start + 2 * i * page, page, false};
    return start;
}

/* Pages between the ranges keep their contents; a range reads as zero if and only if it is purged. */
static unsigned check(const struct culet_os_range *range, const char *start, size_t page)
{
    unsigned purged = 0;

    for (unsigned i = 0; i < RANGES; i++) {
        CHECK(start[2 * i * page] == !range[i].purged, "range %u: purged %d, it reads %d", i, range[i].purged,
              start[2 * i * page]);
        CHECK(start[(2 * i + 1) * page] == 1, "the page behind range %u", i);
        purged += range[i].purged;
    }
    return purged;
}

TEST(all_ranges_go_back)
{
    struct culet_os_range range[RANGES];
    size_t page = culet_os_page_bytes();
    char *start = fill(range, page);

    culet_os_purge_ranges(range, RANGES);
    CHECK_EQUAL(check(range, start, page), RANGES);
    culet_os_purge_ranges(range, 0);
    culet_os_unmap(start, 2 * RANGES * page);
}

/* Locked ranges go back too, from Linux 5.18 on; before, they stay. */
TEST(locked_ranges_keep_no_other)
{
    struct culet_os_range range[RANGES];
    static const unsigned locked[] = {0, 5, 6, 63, 64, 130, RANGES - 1};
    size_t page = culet_os_page_bytes(), count = sizeof locked / sizeof locked[0];
    char *start = fill(range, page);
    bool stay = madvise(start + page, page, DONTNEED_LOCKED) != 0;

    start[page] = 1;
    /* The sanitizers' mlock does nothing. */
    for (size_t i = 0; i < count; i++)
        CHECK(syscall(SYS_mlock, range[locked[i]].start, page) == 0, "mlock");
    culet_os_purge_ranges(range, RANGES);
    CHECK_EQUAL(check(range, start, page), stay ? RANGES - count : RANGES);
    for (size_t i = 0; i < count; i++)
        CHECK(range[locked[i]].purged != stay, "range %u is locked", locked[i]);
    culet_os_unmap(start, 2 * RANGES * page);
}

TEST(refused_ranges_stay)
{
    struct culet_os_range range[RANGES];
    size_t page = culet_os_page_bytes();
    char *start = fill(range, page);

    culet_os_refuse_purge = one_in_three;
    culet_os_purge_ranges(range, RANGES);
    culet_os_refuse_purge = NULL;
    CHECK_EQUAL(check(range, start, page), RANGES - (RANGES + 2) / 3);
    culet_os_unmap(start, 2 * RANGES * page);
}

CHECK_MAIN
