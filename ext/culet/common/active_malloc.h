/*
 * common/active_malloc.h - the object that defines the global `malloc`, the one that all of Ruby's allocations go to, whatever the
 * environment says was preloaded.
 *
 * Nothing is linked against an allocator: every function is looked up in that object at run time.
 */
#ifndef CULET_ACTIVE_MALLOC_H
#define CULET_ACTIVE_MALLOC_H

#include <ruby.h>

#include <string.h>

struct active_malloc {
  void *base;       /* load address of the object that defines malloc */
  const char *path; /* its file; valid while it is loaded */
};

/* Returns whether the owner could be found. */
int culet_find_active_malloc(struct active_malloc *library);

/*
 * The address of a function of the owner; NULL where only some other object
 * has one of that name (glibc's unused mallinfo2 under jemalloc).
 */
void *culet_malloc_function(const struct active_malloc *library, const char *name);

/* The Symbol of that name. */
VALUE culet_symbol(const char *name);

/* ISO C has no conversion from object to function pointers, POSIX guarantees that they have one size. */
#define AS_FUNCTION(type, variable, pointer) \
  type *variable; \
  memcpy(&variable, &(pointer), sizeof(variable))

#endif
