#define _GNU_SOURCE
#include "process/memory.h"

#include "base/bytes.h"
#include "process/proc.h"
#include "reader/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Read for a single access out of order. */
#define SINGLE_BYTES 512u

void culet_memory_open(struct culet_memory *memory, pid_t pid, struct culet_pages *pages, size_t page_bytes)
{
    memory->pid = pid;
    memory->pages = pages;
    memory->page_bytes = page_bytes;
    memory->descriptor = open(culet_proc_path("/proc/%d/mem", (int)pid).text, O_RDONLY | O_CLOEXEC);
    memory->pinning = true;
    culet_memory_forget(memory);
}

/* Whether a page in this state may be read by process_vm_readv. */
static bool pins(const struct culet_memory *memory, uint8_t state)
{
    return memory->pinning && state & (CULET_PAGE_EXCLUSIVE | CULET_PAGE_FILE);
}

static ssize_t fetch(const struct culet_memory *memory, uint64_t address, void *to, size_t bytes, bool pin)
{
    if (!culet_pages_charge(memory->pages))
        return 0;
    if (!pin)
        return pread(memory->descriptor, to, bytes, (off_t)address);
    struct iovec here = {.iov_base = to, .iov_len = bytes};
    struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
    return process_vm_readv(memory->pid, &here, 1, &there, 1, 0);
}

int culet_memory_try(struct culet_memory *memory, const struct culet_maps *maps)
{
    char byte;

    for (size_t i = 0; i < maps->count; i++) {
        const struct culet_mapping *mapping = &maps->all[i];
        if (mapping->perms[0] != 'r' || mapping->path[0] == '[')
            continue;
        uint8_t state = culet_pages_at(memory->pages, mapping->start);
        if (!(state & CULET_PAGE_PRESENT) || !pins(memory, state))
            continue;
        if (fetch(memory, mapping->start, &byte, 1, true) == 1)
            return 0;
        int refused = errno;
        if (refused != EPERM && refused != ENOSYS)
            continue;
        /* A sandbox may refuse the call but allow the file. */
        memory->pinning = false;
        return fetch(memory, mapping->start, &byte, 1, false) == 1 ? 0 : refused;
    }
    return 0;
}

void culet_memory_forget(struct culet_memory *memory)
{
    memory->start = memory->end = 0;
}

/* Extends the window by pages that can be read in the same way. Returns false if no more can be read. */
static bool extend(struct culet_memory *memory, uint64_t end)
{
    uint64_t from = memory->end, to = from;
    uint8_t state = culet_pages_at(memory->pages, from);
    bool pin = pins(memory, state);

    while (to < end && state & (CULET_PAGE_PRESENT | CULET_PAGE_ZERO) && pins(memory, state) == pin) {
        to = (to | (memory->page_bytes - 1)) + 1;
        if (to < end)
            state = culet_pages_at(memory->pages, to);
    }
    if (to > end)
        to = end;
    if (to <= from)
        return false;
    ssize_t got = fetch(memory, from, memory->window + (from - memory->start), (size_t)(to - from), pin);
    if (got > 0)
        memory->end = from + (uint64_t)got;
    return memory->end == to;
}

/* Reads as much of address..end as possible into the window. */
static void fill(struct culet_memory *memory, uint64_t address, uint64_t end)
{
    memory->start = memory->end = address;
    while (memory->end < end && extend(memory, end))
        ;
}

/* Whether the window has these bytes. Any address is valid. */
static bool has(const struct culet_memory *memory, uint64_t address, size_t bytes)
{
    return address >= memory->start && address <= memory->end && bytes <= memory->end - address;
}

const void *culet_memory_at(struct culet_memory *memory, uint64_t address, size_t bytes)
{
    if (!has(memory, address, bytes)) {
        if (address + (bytes > SINGLE_BYTES ? bytes : SINGLE_BYTES) < address)
            return NULL;
        fill(memory, address, address + (bytes > SINGLE_BYTES ? bytes : SINGLE_BYTES));
        if (memory->end - memory->start < bytes)
            return NULL;
    }
    return memory->window + (address - memory->start);
}

const unsigned char *culet_memory_span(struct culet_memory *memory, uint64_t address, size_t least, uint64_t limit,
                                       size_t *length)
{
    if (!has(memory, address, least)) {
        uint64_t end = address + CULET_MEMORY_WINDOW;
        if (end < address)
            return NULL;
        fill(memory, address, end > limit && limit >= address + least ? limit : end);
        if (memory->end - memory->start < least)
            return NULL;
    }
    *length = (size_t)(memory->end - address);
    return memory->window + (address - memory->start);
}

bool culet_memory_copy(struct culet_memory *memory, uint64_t address, void *to, size_t bytes)
{
    unsigned char *at = to;
    bool whole = true;

    while (bytes) {
        size_t part = memory->page_bytes - (address & (memory->page_bytes - 1));
        if (part > bytes)
            part = bytes;
        uint8_t state = culet_pages_at(memory->pages, address);
        if (!(state & CULET_PAGE_PRESENT) || fetch(memory, address, at, part, pins(memory, state)) != (ssize_t)part) {
            memset(at, 0, part);
            whole = whole && !(state & (CULET_PAGE_PRESENT | CULET_PAGE_SWAPPED));
        }
        at += part;
        address += part;
        bytes -= part;
    }
    return whole;
}

bool culet_memory_word(struct culet_memory *memory, uint64_t address, uint64_t *word)
{
    const void *at = culet_memory_at(memory, address, sizeof *word);

    if (at)
        memcpy(word, at, sizeof *word);
    return at;
}

/* ---- many small pieces ---- */

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
        if (!pins(memory, state))
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
