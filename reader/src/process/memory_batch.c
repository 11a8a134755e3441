#define _GNU_SOURCE
#include "process/memory_batch.h"

#include "base/bytes.h"

#include "reader/format.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

struct piece {
    uint64_t address; /* first, for culet_by_word */
    size_t number;
};

/* How to read a piece. */
enum method { NOT_PRESENT, BY_ITSELF, IN_BATCH };

static enum method method_for(struct culet_memory *memory, uint64_t address, size_t bytes)
{
    uint64_t page = memory->page_bytes;
    enum method method = IN_BATCH;

    if (address + bytes < address)
        return NOT_PRESENT;
    for (uint64_t at = address & ~(page - 1); at < address + bytes; at += page) {
        uint8_t state = culet_pages_at(memory->pages, at);
        if (!(state & CULET_PAGE_PRESENT))
            return NOT_PRESENT;
        if (!culet_memory_pins(memory, state))
            method = BY_ITSELF;
    }
    return method;
}

/* Pieces that the kernel did not copy in one call are tried one by one. */
static void read_pieces(struct culet_memory *memory, struct iovec *local, struct iovec *remote, const size_t *numbers,
                        size_t count, bool *got)
{
    size_t bytes = count ? remote->iov_len : 0;
    ssize_t copied = 0;

    if (count && culet_pages_charge(memory->pages))
        copied = process_vm_readv(memory->pid, local, count, remote, count, 0);
    size_t done = copied > 0 ? (size_t)copied / bytes : 0;

    for (size_t i = 0; i < count; i++)
        got[numbers[i]] =
            i < done || culet_memory_copy(memory, (uintptr_t)remote[i].iov_base, local[i].iov_base, bytes);
}

/* In address order, so that neighbours share look-ups of page states. */
static void copy_some(struct culet_memory *memory, const uint64_t *addresses, size_t count, size_t bytes,
                      unsigned char *to, bool *got)
{
    struct piece pieces[CULET_MEMORY_BATCH];
    struct iovec local[CULET_MEMORY_BATCH], remote[CULET_MEMORY_BATCH];
    size_t numbers[CULET_MEMORY_BATCH], present = 0;

    for (size_t i = 0; i < count; i++)
        pieces[i] = (struct piece){.address = addresses[i], .number = i};
    qsort(pieces, count, sizeof *pieces, culet_by_word);
    for (size_t i = 0; i < count; i++) {
        unsigned char *target = to + pieces[i].number * bytes;
        enum method method = method_for(memory, pieces[i].address, bytes);
        got[pieces[i].number] = method == BY_ITSELF && culet_memory_copy(memory, pieces[i].address, target, bytes);
        if (method == NOT_PRESENT)
            memset(target, 0, bytes);
        if (method != IN_BATCH)
            continue;
        local[present] = (struct iovec){.iov_base = target, .iov_len = bytes};
        remote[present] = (struct iovec){.iov_base = (void *)(uintptr_t)pieces[i].address, .iov_len = bytes};
        numbers[present++] = pieces[i].number;
    }
    read_pieces(memory, local, remote, numbers, present, got);
}

void culet_memory_copy_batch(struct culet_memory *memory, const uint64_t *addresses, size_t count, size_t bytes,
                             void *to, bool *got)
{
    for (size_t i = 0, some; i < count; i += some) {
        some = count - i < CULET_MEMORY_BATCH ? count - i : CULET_MEMORY_BATCH;
        copy_some(memory, addresses + i, some, bytes, (unsigned char *)to + i * bytes, got + i);
    }
}
