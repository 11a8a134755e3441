/* housekeeping.h - what a request that took the slow path does at its end: the one place that says what may be due.
 *
 *     start the scavenger        the heap has become large enough for one (wakeup.h)
 *     trim the main stack        the heap has become large enough (stack.h), on the main thread
 *     purge a small heap         after some of the thread's requests (purge.h)
 *     purge a growing heap       after some new pages (purge.h)
 *     start or end the sampling  a tracer has come or gone (profiler.h)
 *
 * Each looks at a word or two when nothing is due. A free does none of it: libc frees while it holds locks. */
#pragma once

/* Does what is due. `caller`: the return address of the request (loader.h). Outside of all arenas and locks. */
void culet_housekeeping(const void *caller);
