/*
 * common/release.h - the call by which the malloc that serves this process gives its free memory back to the kernel.
 *
 * Found at run time in the object that defines malloc; nothing is linked against an allocator.
 */
#ifndef CULET_RELEASE_H
#define CULET_RELEASE_H

#include <stddef.h>

struct culet_release {
  const char *allocator; /* its name, as Culet.allocator tells it */
  const char *call;      /* the function, for people; NULL where there is none */
  const char *why_not;   /* a sentence: why nothing can be given back; NULL where it can */
  int in_ruby_threads;   /* the call acts on the calling thread's memory, and does not bear a fork in its midst */
};

/* Looks for the call. Not safe inside a GC; to be called once, before any of those below. */
void culet_release_find(void);

/* What was found. */
const struct culet_release *culet_release_found(void);

/*
 * Gives back what is free, of all threads' memory as far as the allocator can. Returns nothing: what it was shows in the
 * process's resident bytes. Does nothing where there is no call. Any thread, no GVL needed (but see in_ruby_threads); not
 * in signal handlers.
 */
void culet_release_memory(void);

/*
 * How many bytes culet_release_memory would give back, as far as the allocator counts that itself in little time;
 * SIZE_MAX: it does not.
 */
size_t culet_release_estimate(void);

#endif
