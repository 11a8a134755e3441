/* blackbox/box.h - the mapped file: its tables, records and checksums. No Ruby, no system call per record. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blackbox/format.h"

/* Allocates and maps the file of a descriptor. Returns 0 or an errno; ENOSPC: the disk is full. From then on an access to
 * the mapping cannot end the process: if the file loses its pages (another process truncates it, or the disk fails), its
 * place is taken by memory without a file. */
int culet_box_map(int file);

/* Whether there is a mapping. */
bool culet_box_mapped(void);

/* Whether the file has lost its pages since it was mapped. */
bool culet_box_lost(void);

/* Other threads may still write. After that nothing is written. */
void culet_box_unmap(void);

/* In a forked child: the file is the parent's. */
void culet_box_forget(void);

/* The address of a slot, taken in turns by numbers; NULL without a mapping. */
void *culet_box_slot(enum culet_box_table table, uint64_t number);

/* Bytes that the payload of a record may have. */
size_t culet_box_room(enum culet_box_table table);

/* Writes a record into a slot. A payload that is too long is cut. */
void culet_box_write(enum culet_box_table table, void *slot, uint64_t number, uint64_t time, const void *payload,
                     size_t length);

/* Empties a slot. */
void culet_box_clear(void *slot);
