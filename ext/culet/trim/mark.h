/*
 * trim/mark.h - tells from outside that major collections are followed by trims, and how.
 */
#ifndef CULET_TRIM_MARK_H
#define CULET_TRIM_MARK_H

/*
 * Leaves a mapping without memory in this process, whose name in /proc/PID/maps is "/memfd:culet-trim:MODE". A mark made
 * before goes. Forked children inherit it; a program that this process becomes does not have it. Where the kernel refuses
 * it there is none, and nothing else depends on it. Not by several threads at once.
 */
void culet_trim_mark(const char *mode);

/*
 * Returns whether this process has such a mark that is not ours: that of another copy of this library, which a
 * Ruby::Box has for itself, or which belongs to another version of culet.
 */
int culet_trim_mark_exists(void);

#endif
