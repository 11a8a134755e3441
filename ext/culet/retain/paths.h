/* retain/paths.h - chains of references from holders to objects, with the names of the references. */
#pragma once

#include "retain/analysis.h"

/* Writes a path as a JSON list: from a holder to where most of its bytes are, each step with what its object keeps. */
void culet_paths_write_heaviest(struct culet_analysis *analysis, uint32_t holder, struct culet_buffer *out);

/* Adds up to `most` paths to an object to a JSON list that has begun, one from each holder. */
void culet_paths_write_to(struct culet_analysis *analysis, uint32_t id, int most, struct culet_buffer *out);

/* Writes `"class":"...","address":"0x..."`. */
void culet_paths_write_object(struct culet_analysis *analysis, uint32_t id, struct culet_buffer *out);
