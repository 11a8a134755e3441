/* walker.h - what each kind of heap provides. A walker keeps its state in a context of its own, zeroed by the
 * caller. */
#pragma once

#include "reading.h"

struct culet_walker {
    const char *name;
    size_t context_bytes;
    bool without_memory; /* runs also if the memory of the process cannot be read */

    /* Paused: is there such a heap in the process? Reads a few pages only. Returns whether to walk. */
    bool (*recognize)(struct culet_reading *reading, void *context);

    /* Not paused at the start (in sliced mode): pauses by culet_reading_pause and yields often. Makes the regions
     * and names the mappings. NULL: there is nothing to walk. */
    void (*walk)(struct culet_reading *reading, void *context);

    /* The process runs: writes the records of the walker, if it has any. main.c has written the regions. */
    void (*write)(struct culet_reading *reading, void *context);
};

extern const struct culet_walker culet_culet_walker;
extern const struct culet_walker culet_foreign_allocators_walker;
extern const struct culet_walker culet_glibc_walker;
extern const struct culet_walker culet_musl_walker;
extern const struct culet_walker culet_ruby_walker;
extern const struct culet_walker culet_mapping_walker;
