/* comparison/process.h - one of the two processes of a comparison: memory, malloc blocks, heap pages. */
#pragma once

#include "comparison/blocks.h"
#include "comparison/heap_page.h"
#include "comparison/process_memory.h"

struct comparison_process {
    struct comparison_memory memory;
    struct comparison_blocks blocks;
    const struct comparison_heap_page *pages; /* in address order, without overlaps, containing their slots */
    size_t page_count;
    uint64_t page_bytes; /* of a heap page */
};
