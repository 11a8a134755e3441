/* stack.h - returns the unused part of the calling thread's stack to the kernel.
 *
 * Ruby reserves its main thread's stack by one alloca of all of it (reserve_stack in CRuby's thread_pthread.c). Built
 * with -fstack-clash-protection, as Debian 13 builds it, that writes to every page: 8 MiB resident. */
#pragma once

/* Returns the pages below the caller's frame, except the 128 KiB that the next calls need. Does nothing in a fiber, or
 * if the thread's stack is unknown. */
void culet_trim_stack(void);
