/* profile/internal_slots.h - sampled slots that programs cannot have: Ruby's own, as method entries, environments of blocks and
 * included modules.
 *
 * No WeakMap holds them. A slot is looked at again at each check: it has been freed when its type or its first two words
 * differ, which lead to what the slot describes, and which Ruby does not change. Compaction moves slots: those that moved
 * count as freed. */
#pragma once

#include <ruby.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether it is such a slot. */
bool culet_internal_slots_has(VALUE slot);

/* Whether two T_IMEMO are of one kind. */
bool culet_internal_slots_same_kind(VALUE one, VALUE other);

/* Its name, e.g. "T_IMEMO (ment)". Returns the length. */
size_t culet_internal_slots_name(VALUE slot, char *name, size_t size);

/* Whether there is room for another one. */
bool culet_internal_slots_has_room(void);

/* Follows a slot, which is live. Requires room. Calls no method, and allocates nothing. */
void culet_internal_slots_add(VALUE slot, uint32_t sample);

/* Forgets all. */
void culet_internal_slots_start(void);

/* Removes the samples of those that are gone. Requires the GVL, not during GC. */
void culet_internal_slots_check(void);

/* Sets, by the number of its sample, the address of each slot that has not been freed. As culet_internal_slots_check. */
void culet_internal_slots_addresses(VALUE *addresses, size_t count);
