/* agent/objects.h - what Ruby's objects hold, by type. */
#ifndef CULET_AGENT_OBJECTS_H
#define CULET_AGENT_OBJECTS_H

#include "agent/classes.h"
#include "common/buffer.h"

/* What else is wanted than counts: what a question says behind "data=". */
enum culet_report {
  CULET_REPORT_DATA = 1,   /* extensions' objects (T_DATA) are asked for their sizes */
  CULET_REPORT_CLASSES = 2 /* what classes are called (agent/classes.h) */
};

struct culet_objects_options {
  int data;             /* enum culet_report, added up */
  double limit_seconds; /* stop counting after that */
};

/*
 * Adds one JSON object of kind "objects" and a line's end: counts, bytes of slots and bytes taken from malloc, by type,
 * of T_DATA by what the extension calls it, of T_IMEMO by kind. Called with the GVL, by a Ruby thread, which it occupies
 * meanwhile. May raise.
 *
 * kind "objects": seconds, complete (false: the limit ended it), data_asked, count, slot_bytes, malloc_bytes,
 *   elsewhere_bytes, types, data, internals: [{name, count, slot_bytes, malloc_bytes, elsewhere_bytes, shared, untold},
 *   ...], most bytes first. elsewhere_bytes: held, but not of malloc's: in Ruby's transient heap (up to Ruby 3.1), on threads' stacks; shared: strings and arrays that use another one's buffer, which is counted there; untold: objects that do not tell
 *   what they hold. data: the 20 largest and "others"; it and internals are parts of T_DATA and T_IMEMO in types.
 *   why: a sentence where there is nothing of all that.
 */
void culet_objects_write(struct culet_buffer *buffer, const struct culet_objects_options *options);

/* Whether rb_obj_memsize_of may be asked of objects of a type (T_STRING and so on). */
int culet_heap_memsize_is_safe(int type);

#endif
