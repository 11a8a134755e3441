/* retain/live_roots.h - the holders of a live heap. */
#pragma once

#include "retain/live_heap.h"

/* Adds the holders that Ruby's roots are. */
void culet_live_add_roots(struct culet_live *live);

/* Adds the holders that the references of a named class are. */
void culet_live_add_class(struct culet_live *live, VALUE class);

/* Adds the holders for code that other layers refer to. */
void culet_live_add_loose_code(struct culet_live *live);
