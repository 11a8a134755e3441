#include <ruby.h>

#include "comparison/owners.h"

#include <stdlib.h>
#include <string.h>

/* blocks followed from the first: a class's tables, their entries, call caches and their targets */
#define MAX_DEPTH 4
/* a larger block is data */
#define MAX_FOLLOWED_BYTES 65536
/* blocks between two checks for interrupts */
#define INTERRUPT_INTERVAL 65536

/* Types whose objects have nested tables, in the order in which they are followed. */
static const unsigned char deep_owners[COMPARISON_DEEP] = {OWNER_CODE,       RUBY_SLOT_CLASS, RUBY_SLOT_MODULE,
                                                           RUBY_SLOT_ICLASS, RUBY_SLOT_HASH,  RUBY_SLOT_DATA};

static void push(struct comparison_list *list, uint32_t block)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 1024 : 2 * list->capacity;
        REALLOC_N(list->blocks, uint32_t, capacity);
        list->capacity = capacity;
    }
    list->blocks[list->count++] = block;
}

static uint64_t word_at(const char *bytes, uint64_t index)
{
    uint64_t word;

    memcpy(&word, bytes + index * COMPARISON_WORD, COMPARISON_WORD);
    return word;
}

/* A slot references a block without owner. */
static void assign_owner(struct comparison_owners *owners, uint32_t block, uint64_t flags, uint64_t second)
{
    unsigned char owner = ruby_slot_is_code(flags) ? OWNER_CODE : (unsigned char)(flags & RUBY_SLOT_TYPE_MASK);

    owners->owners[block] = owner;
    for (size_t index = 0; index < COMPARISON_DEEP; index++)
        if (deep_owners[index] == owner)
            push(&owners->deep[index], block);
    if (owners->classes != NULL && owner != OWNER_CODE && owner != RUBY_SLOT_IMEMO)
        owners->classes[block] = second;
}

/* The bit of the page's first word. */
static uint64_t code_bit(const struct comparison_process *process, const struct comparison_heap_page *page)
{
    return (uint64_t)(page - process->pages) * (process->page_bytes / COMPARISON_WORD);
}

int culet_comparison_is_code(const struct comparison_owners *owners, const struct comparison_process *process,
                             uint64_t address)
{
    const struct comparison_heap_page *page =
        culet_heap_page_at(process->pages, process->page_count, process->page_bytes, address);
    uint64_t bit;

    if (page == NULL || (address - page->address) % COMPARISON_WORD != 0)
        return 0;
    bit = code_bit(process, page) + (address - page->address) / COMPARISON_WORD;
    return owners->code[bit / 8] >> bit % 8 & 1;
}

static void scan_heap_page(struct comparison_owners *owners, struct comparison_process *process,
                           const struct comparison_heap_page *page)
{
    uint64_t length = page->slot_bytes / COMPARISON_WORD, at = page->first_slot / COMPARISON_WORD;
    uint32_t block;

    if (!culet_comparison_read(&process->memory, page->address, page->address + process->page_bytes, owners->page))
        return;
    block = culet_comparison_block_known_by(&process->blocks, word_at(owners->page, 0));
    if (block != COMPARISON_NONE)
        owners->owners[block] = OWNER_HEAP_PAGE;
    for (uint64_t slot = 0; slot < page->slots; slot++, at += length) {
        uint64_t flags = word_at(owners->page, at), second = word_at(owners->page, at + 1);
        if (!ruby_slot_is_live(flags))
            continue;
        if (ruby_slot_is_code(flags)) {
            uint64_t bit = code_bit(process, page) + at;
            owners->code[bit / 8] |= (unsigned char)(1 << bit % 8);
        }
        for (uint64_t index = at; index < at + length; index++) {
            block = culet_comparison_block_known_by(&process->blocks, word_at(owners->page, index));
            if (block != COMPARISON_NONE && owners->owners[block] == OWNER_UNKNOWN)
                assign_owner(owners, block, flags, second);
        }
    }
}

/* Gives the owner to the ownerless blocks that a block references. */
static void scan_block(struct comparison_owners *owners, struct comparison_process *process, uint32_t block,
                       unsigned char owner)
{
    uint64_t first, past;
    const char *bytes;

    culet_comparison_block_bounds(&process->blocks, block, &first, &past);
    first += process->blocks.header_bytes;
    if (past <= first || past - first > MAX_FOLLOWED_BYTES)
        return;
    bytes = culet_comparison_peek(&process->memory, first, past);
    if (bytes == NULL)
        return;
    for (uint64_t index = 0; index < (past - first) / COMPARISON_WORD; index++) {
        uint32_t other = culet_comparison_block_known_by(&process->blocks, word_at(bytes, index));
        if (other == COMPARISON_NONE || owners->owners[other] != OWNER_UNKNOWN)
            continue;
        owners->owners[other] = owner;
        push(&owners->next, other);
    }
}

static int by_number(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

    return (a > b) - (a < b);
}

/* In address order, which reads fastest. */
static void follow(struct comparison_owners *owners, struct comparison_process *process, struct comparison_list *list,
                   unsigned char owner)
{
    for (int step = 0; step < MAX_DEPTH && list->count > 0; step++) {
        struct comparison_list done = *list;

        qsort(list->blocks, list->count, sizeof(*list->blocks), by_number);
        owners->next.count = 0;
        for (size_t index = 0; index < list->count; index++) {
            scan_block(owners, process, list->blocks[index], owner);
            if (index % INTERRUPT_INTERVAL == 0)
                rb_thread_check_ints();
        }
        *list = owners->next;
        owners->next = done;
    }
}

void culet_comparison_find_owners(struct comparison_owners *owners, struct comparison_process *process, int classes)
{
    size_t count = process->blocks.count;

    owners->owners = ALLOC_N(unsigned char, count + 1);
    memset(owners->owners, OWNER_UNKNOWN, count);
    if (classes) {
        owners->classes = ALLOC_N(uint64_t, count + 1);
        memset(owners->classes, 0, count * sizeof(*owners->classes));
    }
    if (count == 0)
        return;
    owners->page = xmalloc(process->page_bytes);
    owners->code = xcalloc(process->page_count + 1, process->page_bytes / COMPARISON_WORD / 8 + 1);
    for (size_t index = 0; index < process->page_count; index++) {
        scan_heap_page(owners, process, &process->pages[index]);
        rb_thread_check_ints();
    }
    for (size_t index = 0; index < COMPARISON_DEEP; index++)
        follow(owners, process, &owners->deep[index], deep_owners[index]);
}

void culet_comparison_owners_free(struct comparison_owners *owners)
{
    xfree(owners->owners);
    xfree(owners->classes);
    xfree(owners->page);
    xfree(owners->code);
    xfree(owners->next.blocks);
    for (size_t index = 0; index < COMPARISON_DEEP; index++)
        xfree(owners->deep[index].blocks);
}
