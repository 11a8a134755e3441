/* trim/gc_watch.h - sees Ruby's garbage collections, without a hook. */
#ifndef CULET_GC_WATCH_H
#define CULET_GC_WATCH_H

/*
 * Told of each collection while it marks: the GVL, or all of the virtual machine, is held, nothing of Ruby's may be
 * allocated, raised or called but rb_postponed_job_*. It may be called in a thread of the collector's own, which is none of
 * Ruby's. Never called twice at once. major: whether it marks old objects too.
 */
typedef void culet_gc_watcher(int major);

/* Finds out what this Ruby's collector tells. To be called once, before those below, not inside a GC. */
void culet_gc_prepare(void);

/* Begins to watch. Only once. May raise. */
void culet_gc_watch(culet_gc_watcher *watcher);

/*
 * Returns whether the last collection's sweep has ended, as far as this Ruby tells; 0 where it does not. For Ruby's
 * threads, not inside a GC.
 */
int culet_gc_swept(void);

#endif
