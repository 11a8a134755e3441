#include <ruby.h>

#include "comparison/owners.h"

#include <stdlib.h>
#include <string.h>

/* Steps behind the first block: from what a class holds to a table, its entries, what calls found, and for which. */
#define DEPTH 4
/* A longer block is data, and not followed. */
#define LONGEST_BYTES 65536
/* Between so many blocks an interrupt is looked for. */
#define BREATH 65536

/* Owners whose objects have tables behind their tables, in the order in which they are followed. */
static const unsigned char deep_owners[COMPARISON_DEEP] = {OWNER_CODE, SLOT_CLASS, SLOT_MODULE, SLOT_ICLASS, SLOT_HASH, SLOT_DATA};

static void
push(struct comparison_list *list, uint32_t block)
{
  if (list->count == list->room) {
    size_t room = list->room == 0 ? 1024 : 2 * list->room;
    REALLOC_N(list->blocks, uint32_t, room);
    list->room = room;
  }
  list->blocks[list->count++] = block;
}

static uint64_t
word_at(const char *bytes, uint64_t index)
{
  uint64_t word;

  memcpy(&word, bytes + index * COMPARISON_WORD, COMPARISON_WORD);
  return word;
}

/* A word in an object's slot leads to a block that nobody had. */
static void
own(struct comparison_owners *owners, uint32_t block, uint64_t flags, uint64_t second)
{
  unsigned char owner = culet_slot_is_code(flags) ? OWNER_CODE : (unsigned char)(flags & SLOT_TYPE);

  owners->owners[block] = owner;
  for (size_t index = 0; index < COMPARISON_DEEP; index++)
    if (deep_owners[index] == owner) push(&owners->deep[index], block);
  if (owners->classes != NULL && owner != OWNER_CODE && owner != SLOT_IMEMO) owners->classes[block] = second;
}

static void
look_at(struct comparison_owners *owners, struct comparison_side *side, const struct comparison_page *page)
{
  uint64_t length = page->slot_bytes / COMPARISON_WORD, at = page->first_slot / COMPARISON_WORD;
  uint32_t block;

  if (!culet_comparison_read(&side->memory, page->address, page->address + side->page_bytes, owners->page)) return;
  block = culet_comparison_block_known_by(&side->blocks, word_at(owners->page, 0));
  if (block != COMPARISON_NONE) owners->owners[block] = OWNER_PAGE;
  for (uint64_t slot = 0; slot < page->slots; slot++, at += length) {
    uint64_t flags = word_at(owners->page, at), second = word_at(owners->page, at + 1);
    if (!culet_slot_is_live(flags)) continue;
    for (uint64_t index = at; index < at + length; index++) {
      block = culet_comparison_block_known_by(&side->blocks, word_at(owners->page, index));
      if (block != COMPARISON_NONE && owners->owners[block] == OWNER_NOBODY) own(owners, block, flags, second);
    }
  }
}

/* Notes the blocks that nobody had, and to which this one leads. */
static void
look_behind(struct comparison_owners *owners, struct comparison_side *side, uint32_t block, unsigned char owner)
{
  uint64_t first, past;
  const char *bytes;

  culet_comparison_block_bounds(&side->blocks, block, &first, &past);
  first += side->blocks.header_bytes;
  if (past <= first || past - first > LONGEST_BYTES) return;
  bytes = culet_comparison_peek(&side->memory, first, past);
  if (bytes == NULL) return;
  for (uint64_t index = 0; index < (past - first) / COMPARISON_WORD; index++) {
    uint32_t other = culet_comparison_block_known_by(&side->blocks, word_at(bytes, index));
    if (other == COMPARISON_NONE || owners->owners[other] != OWNER_NOBODY) continue;
    owners->owners[other] = owner;
    push(&owners->behind, other);
  }
}

static int
by_number(const void *one, const void *other)
{
  uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

  return (a > b) - (a < b);
}

/* In the order of addresses, which is how they are read fast. */
static void
follow(struct comparison_owners *owners, struct comparison_side *side, struct comparison_list *list, unsigned char owner)
{
  for (int step = 0; step < DEPTH && list->count > 0; step++) {
    struct comparison_list done = *list;

    qsort(list->blocks, list->count, sizeof(*list->blocks), by_number);
    owners->behind.count = 0;
    for (size_t index = 0; index < list->count; index++) {
      look_behind(owners, side, list->blocks[index], owner);
      if (index % BREATH == 0) rb_thread_check_ints();
    }
    *list = owners->behind;
    owners->behind = done;
  }
}

void
culet_comparison_find_owners(struct comparison_owners *owners, struct comparison_side *side, int classes)
{
  size_t count = side->blocks.count;

  owners->owners = ALLOC_N(unsigned char, count + 1);
  memset(owners->owners, OWNER_NOBODY, count);
  if (classes) {
    owners->classes = ALLOC_N(uint64_t, count + 1);
    memset(owners->classes, 0, count * sizeof(*owners->classes));
  }
  if (count == 0) return;
  owners->page = xmalloc(side->page_bytes);
  for (size_t index = 0; index < side->page_count; index++) {
    look_at(owners, side, &side->pages[index]);
    rb_thread_check_ints();
  }
  for (size_t index = 0; index < COMPARISON_DEEP; index++) follow(owners, side, &owners->deep[index], deep_owners[index]);
}

void
culet_comparison_owners_free(struct comparison_owners *owners)
{
  xfree(owners->owners);
  xfree(owners->classes);
  xfree(owners->page);
  xfree(owners->behind.blocks);
  for (size_t index = 0; index < COMPARISON_DEEP; index++) xfree(owners->deep[index].blocks);
}
