/* blackbox/ledger.h - where the memory of the process is, by what can be read cheaply in a native thread. */
#ifndef CULET_BLACKBOX_LEDGER_H
#define CULET_BLACKBOX_LEDGER_H

#include <stdbool.h>

#include "blackbox/format.h"

/* The files of the control group whose limit counts; an empty path: none. `used`, `limit` and `stat` are of one group. */
#define CULET_LEDGER_PATH 512
struct culet_ledger_group {
    char used[CULET_LEDGER_PATH], limit[CULET_LEDGER_PATH], stat[CULET_LEDGER_PATH];
    char kills[CULET_LEDGER_PATH], pressure[CULET_LEDGER_PATH];
};

/* Finds the symbols of GC.stat. With the GVL, not during GC. May raise. */
void culet_ledger_prepare(const struct culet_ledger_group *group, uint64_t ruby_page_bytes);

/* Notes Ruby's figures for the next ledger if they are older than half a second. In a Ruby thread. Allocates nothing. */
void culet_ledger_note_ruby_if_old(uint64_t now);

/* Reads the resident size and the group's use. */
void culet_ledger_read_fast(struct culet_box_ledger *ledger);

/* Reads everything; what takes long, at intervals of which it takes a thousandth. */
void culet_ledger_read(struct culet_box_ledger *ledger);

/* The resident size as last read. In any thread. */
uint64_t culet_ledger_resident(void);

/* In a forked child: its figures begin anew. */
void culet_ledger_reset(void);

#endif
