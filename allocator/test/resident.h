/* resident.h - which pages of a range are resident, and the refusal of memory. */
#pragma once

#include "check.h"
#include "os.h"

/* Resident bytes among the kernel pages (the real ones, see pagesize.c) that lie wholly inside the range. */
static inline size_t resident_bytes(uintptr_t start, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), resident = 0;
    uintptr_t from = (start + page - 1) & ~(page - 1), to = (start + bytes) & ~(page - 1);
    unsigned char vector[64];

    while (from < to) {
        size_t pages = (to - from) / page < sizeof vector ? (to - from) / page : sizeof vector;
        CHECK(mincore((void *)from, pages * page, vector) == 0, "mincore failed at %p", (void *)from);
        for (size_t i = 0; i < pages; i++)
            resident += (vector[i] & 1) * page;
        from += pages * page;
    }
    return resident;
}

static inline bool resident_refuse_all(void)
{
    return true;
}
