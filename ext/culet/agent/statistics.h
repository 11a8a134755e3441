/* agent/statistics.h - what the allocator that serves this process counts itself. */
#ifndef CULET_AGENT_STATISTICS_H
#define CULET_AGENT_STATISTICS_H

#include "common/buffer.h"

/*
 * Adds one JSON object of kind "allocator_statistics" and a line's end: name, version, library, and
 *   figures: what it counts, names as it gives them with _bytes behind those that are bytes. Under glibc and culet
 *            what Culet.stats has; under jemalloc its stats.*, under gperftools' tcmalloc its properties, under
 *            mimalloc mi_process_info; nothing under others.
 * With the GVL; may raise.
 */
void culet_statistics_write(struct culet_buffer *buffer);

#endif
