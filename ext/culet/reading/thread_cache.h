/* reading/thread_cache.h - the free blocks that malloc keeps for the calling thread. */
#pragma once

/* Gives the calling thread's cache a known content, so that two readings of what is in use differ by what the program
 * uses alone: the counts of glibc and jemalloc have cached blocks as used. jemalloc's becomes empty, glibc's full. */
void culet_settle_thread_cache(void);
