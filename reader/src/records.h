/* records.h - writes the records about a whole reading. */
#pragma once

#include "reading.h"

/* Writes the process, its mappings with their pages, and the regions. */
void culet_records_write_process(const struct culet_reading *reading);

/* Writes the allocator record if no walker knows the allocator, the pauses and the problems. */
void culet_records_write_end(const struct culet_reading *reading);
