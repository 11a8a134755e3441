/* figures.h - what malloc itself says of its heap. */
#ifndef CULET_FIGURES_TEST_H
#define CULET_FIGURES_TEST_H

#include <malloc.h>
#include <stddef.h>

/* glibc before 2.33 has ints: taken as unsigned they are right up to 4 GB. */
#if __GLIBC_PREREQ(2, 33)
typedef size_t figure_type;
#define MALLOC_FIGURES() mallinfo2()
#else
typedef unsigned figure_type;
#define MALLOC_FIGURES() mallinfo()
#endif

/* mallinfo(3)'s fields of these names. */
struct figures {
    size_t uordblks, fordblks, hblks, hblkhd, arena, fsmblks;
};

static inline struct figures figures_of_malloc(void)
{
    __auto_type info = MALLOC_FIGURES();

    return (struct figures){.uordblks = (figure_type)info.uordblks, .fordblks = (figure_type)info.fordblks,
                            .hblks = (figure_type)info.hblks,       .hblkhd = (figure_type)info.hblkhd,
                            .arena = (figure_type)info.arena,       .fsmblks = (figure_type)info.fsmblks};
}

#endif
