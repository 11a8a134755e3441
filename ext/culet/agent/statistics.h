/* agent/statistics.h - the active malloc's own statistics. */
#pragma once

#include "common/buffer.h"

/* Adds a JSON line of kind "allocator_statistics": name, version, library, and
 *   figures: under glibc and culet those of Culet.stats, under jemalloc stats.*, under gperftools' tcmalloc its
 *   properties, under mimalloc mi_process_info; empty under others. Names are the allocator's, with _bytes appended to
 *   bytes.
 * Requires the GVL. May raise. */
void culet_statistics_write(struct culet_buffer *buffer);
