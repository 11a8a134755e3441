/* ruby_transient.c - has what Ruby 3.1 has in memory: a transient heap, right behind pages of objects and right before
 * others. Prints the start of the transient heap and the number of pages, and stops itself.
 *
 * The first page of each pair begins as a block of the transient heap can: the low 16 bits of the pointer to its
 * description are small, and a zero follows. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES ((size_t)16384)
#define BLOCK_BYTES ((size_t)32768)
#define HEAP_BYTES ((size_t)32 << 20)
#define BEFORE 6
#define AFTER 4
#define FIRST_SLOT 40
#define SLOT_BYTES 40
#define SLOTS 408
#define T_STRING 5

struct description {
    uint16_t slot_bytes, slots, free, final, pinned;
    uint64_t flags;
    char *first;
    uint64_t others[8];
};

static _Alignas(65536) struct description descriptions[BEFORE + AFTER];
static size_t pages;

static void make_page(char *page)
{
    struct description *description = &descriptions[pages++];

    *description = (struct description){.slot_bytes = SLOT_BYTES, .slots = SLOTS, .first = page + FIRST_SLOT};
    *(struct description **)(void *)page = description;
    for (size_t i = 0; i < SLOTS; i += 2)
        *(uint64_t *)(void *)(page + FIRST_SLOT + i * SLOT_BYTES) = T_STRING;
}

/* Used bytes, marked bytes, objects, zero; the next block. */
static void make_block(char *block)
{
    *(uint64_t *)(void *)block = UINT64_C(0xffff0000);
}

int main(void)
{
    size_t bytes = BEFORE * PAGE_BYTES + HEAP_BYTES + AFTER * PAGE_BYTES + BLOCK_BYTES;
    char *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (all == MAP_FAILED)
        return 1;
    all += -(uintptr_t)all % BLOCK_BYTES;
    char *heap = all + BEFORE * PAGE_BYTES, *end = heap + HEAP_BYTES;

    for (char *at = all; at < heap; at += PAGE_BYTES)
        make_page(at);
    for (char *at = heap; at < end; at += BLOCK_BYTES)
        make_block(at);
    for (size_t i = 0; i < AFTER; i++)
        make_page(end + i * PAGE_BYTES);
    printf("transient %lu\npages %zu\nend\n", (unsigned long)(uintptr_t)heap, pages);
    fflush(stdout);
    raise(SIGSTOP);
    for (;;)
        pause();
}
