/* agent/objects.h - counts of Ruby's objects and their memory, by type. */
#pragma once

#include "agent/classes.h"
#include "common/buffer.h"

/* Options, the number after "data=" in a request. */
enum culet_report {
    CULET_REPORT_DATA = 1,   /* sizes of extensions' objects (T_DATA) */
    CULET_REPORT_CLASSES = 2 /* names of classes (agent/classes.h) */
};

struct culet_objects_options {
    int data;             /* sum of enum culet_report */
    double limit_seconds; /* the count stops after that */
};

/* Adds a JSON line of kind "objects": counts, bytes of slots and bytes from malloc by type, of T_DATA by the
 * extension's type name, of T_IMEMO by kind. Requires the GVL and a Ruby thread, which is busy meanwhile. May raise.
 *
 *   seconds, complete (false: stopped at the limit), data_asked, count, slot_bytes, malloc_bytes, elsewhere_bytes
 *   types, data, internals: [{name, count, slot_bytes, malloc_bytes, elsewhere_bytes, shared, untold}, ...], largest
 *   first;
 *     data: the 20 largest and "others"; data and internals are part of T_DATA and T_IMEMO in types
 *   elsewhere_bytes: not from malloc: in the transient heap (up to Ruby 3.1), on threads' stacks
 *   shared: strings and arrays that use another one's buffer, which is counted there
 *   untold: objects that do not report their size
 *   why: the reason if nothing was counted, else "" */
void culet_objects_write(struct culet_buffer *buffer, const struct culet_objects_options *options);
