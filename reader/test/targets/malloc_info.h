/* malloc_info.h - malloc's own figures. */
#pragma once

#include <malloc.h>
#include <stddef.h>

/* glibc before 2.33 has ints: as unsigned numbers they are right up to 4 GB. */
#if __GLIBC_PREREQ(2, 33)
typedef size_t figure_type;
#define MALLOC_FIGURES() mallinfo2()
#else
typedef unsigned figure_type;
#define MALLOC_FIGURES() mallinfo()
#endif

/* The fields of mallinfo(3). */
struct malloc_info {
    size_t uordblks, fordblks, hblks, hblkhd, arena, fsmblks;
};

static inline struct malloc_info read_malloc_info(void)
{
    __auto_type info = MALLOC_FIGURES();

    return (struct malloc_info){.uordblks = (figure_type)info.uordblks,
                                .fordblks = (figure_type)info.fordblks,
                                .hblks = (figure_type)info.hblks,
                                .hblkhd = (figure_type)info.hblkhd,
                                .arena = (figure_type)info.arena,
                                .fsmblks = (figure_type)info.fsmblks};
}
