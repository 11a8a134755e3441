/*
 * comparison/owners.h - which of Ruby's objects a block of malloc's belongs to: the one in whose slot the block's address
 * stands, or which leads there by blocks of its own. Needs no knowledge of how any Ruby lays its objects out; a number that
 * is an address by chance can make a block someone's that it is not.
 */
#ifndef CULET_COMPARISON_OWNERS_H
#define CULET_COMPARISON_OWNERS_H

#include "comparison/process.h"

/* Below these: Ruby's number of the type. */
enum comparison_owner {
  OWNER_CODE = 32, /* methods, their code, and what calls found */
  OWNER_HEAP_PAGE,      /* what Ruby's collector knows of a heap page */
  OWNER_UNKNOWN,    /* no object that is known */
  OWNERS
};

/* Blocks whose contents are yet to be followed. */
struct comparison_list {
  uint32_t *blocks;
  size_t count, capacity;
};

#define COMPARISON_DEEP 6

struct comparison_owners {
  unsigned char *owners; /* of each block */
  uint64_t *classes;     /* of each block the second word of its object, of most the class's address; 0: not known. NULL unless wanted */
  struct comparison_list deep[COMPARISON_DEEP], next;
  char *page; /* room for one of Ruby's */
};

/*
 * Finds the owners of all blocks of a process. Raises NoMemoryError, and what interrupts the thread.
 *
 * classes: whether classes are wanted
 */
void culet_comparison_find_owners(struct comparison_owners *owners, struct comparison_process *process, int classes);

void culet_comparison_owners_free(struct comparison_owners *owners);

#endif
