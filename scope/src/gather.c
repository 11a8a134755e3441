#define _GNU_SOURCE
#include "gather.h"

#include "../format.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

struct piece {
    uint64_t address;
    size_t number;
};

static int compare(const void *a, const void *b)
{
    uint64_t first = ((const struct piece *)a)->address, second = ((const struct piece *)b)->address;

    return first < second ? -1 : first > second;
}

/* How a piece can be had. */
enum way { NOT_PRESENT, ALONE, TOGETHER };

static enum way way_to(struct culet_memory *memory, uint64_t address, size_t bytes)
{
    uint64_t page = memory->page_bytes;
    enum way way = TOGETHER;

    if (address + bytes < address)
        return NOT_PRESENT;
    for (uint64_t at = address & ~(page - 1); at < address + bytes; at += page) {
        uint8_t state = culet_pages_at(memory->pages, at);
        if (!(state & CULET_PAGE_PRESENT))
            return NOT_PRESENT;
        if (!culet_memory_pins(memory, state))
            way = ALONE;
    }
    return way;
}

/* What the kernel did not copy in one go, if it did any, is tried piece by piece. */
static void read_pieces(struct culet_memory *memory, struct iovec *local, struct iovec *remote, const size_t *numbers,
                        size_t count, bool *got)
{
    size_t bytes = count ? remote->iov_len : 0;
    ssize_t copied = count && culet_pages_spend(memory->pages) ? process_vm_readv(memory->pid, local, count, remote, count, 0) : 0;
    size_t done = copied > 0 ? (size_t)copied / bytes : 0;

    for (size_t i = 0; i < count; i++)
        got[numbers[i]] = i < done ||
                          culet_memory_copy(memory, (uintptr_t)remote[i].iov_base, local[i].iov_base, bytes);
}

/* In the order of addresses: neighbours share what has to be asked of the kernel about their pages. */
static void gather_some(struct culet_memory *memory, const uint64_t *addresses, size_t count, size_t bytes,
                        unsigned char *to, bool *got)
{
    struct piece pieces[CULET_GATHER_PIECES];
    struct iovec local[CULET_GATHER_PIECES], remote[CULET_GATHER_PIECES];
    size_t numbers[CULET_GATHER_PIECES], present = 0;

    for (size_t i = 0; i < count; i++)
        pieces[i] = (struct piece){.address = addresses[i], .number = i};
    qsort(pieces, count, sizeof *pieces, compare);
    for (size_t i = 0; i < count; i++) {
        unsigned char *target = to + pieces[i].number * bytes;
        enum way way = way_to(memory, pieces[i].address, bytes);
        got[pieces[i].number] = way == ALONE && culet_memory_copy(memory, pieces[i].address, target, bytes);
        if (way == NOT_PRESENT)
            memset(target, 0, bytes);
        if (way != TOGETHER)
            continue;
        local[present] = (struct iovec){.iov_base = target, .iov_len = bytes};
        remote[present] = (struct iovec){.iov_base = (void *)(uintptr_t)pieces[i].address, .iov_len = bytes};
        numbers[present++] = pieces[i].number;
    }
    read_pieces(memory, local, remote, numbers, present, got);
}

void culet_gather(struct culet_memory *memory, const uint64_t *addresses, size_t count, size_t bytes, void *to,
                  bool *got)
{
    for (size_t i = 0, some; i < count; i += some) {
        some = count - i < CULET_GATHER_PIECES ? count - i : CULET_GATHER_PIECES;
        gather_some(memory, addresses + i, some, bytes, (unsigned char *)to + i * bytes, got + i);
    }
}
