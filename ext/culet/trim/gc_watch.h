/* trim/gc_watch.h - reports Ruby's garbage collections, without GC event hooks. */
#pragma once

/* Called for each collection while it marks, with the GVL held or the VM stopped, never concurrently, possibly in a
 * thread of the collector. Of Ruby's API it may call only rb_postponed_job_* and rb_gc_stat with a Symbol. major: whether
 * old objects are marked too. */
typedef void culet_gc_watcher(int major);

/* Detects the keys of GC.stat that the collector has. Once, before the other functions, not during GC. */
void culet_gc_prepare(void);

/* Starts watching: once for each part (trims, the profile, the limit, the black box, the agent). With the GVL. May raise. */
void culet_gc_watch(culet_gc_watcher *watcher);

/* Whether the sweep of the last collection has ended; 0 if this Ruby does not report it. Ruby threads only, not during
 * GC. */
int culet_gc_swept(void);
