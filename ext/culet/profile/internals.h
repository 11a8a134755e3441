/* profile/internals.h - sampled slots that programs cannot have: Ruby's own, as method entries, environments of blocks and
 * included modules.
 *
 * No WeakMap holds them. A slot is looked at again at each check: it has been freed when its type or its first two words
 * differ, which lead to what the slot describes, and which Ruby does not change. Compaction moves slots: those that moved
 * count as freed. */
#ifndef CULET_PROFILE_INTERNALS_H
#define CULET_PROFILE_INTERNALS_H

#include <ruby.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/core/profile.h"

/* Once. */
void culet_internals_prepare(void);

/* Whether it is such a slot. */
bool culet_internals_has(VALUE slot);

/* Whether two T_IMEMO are of one kind. */
bool culet_internals_same_kind(VALUE one, VALUE other);

/* Its name, e.g. "T_IMEMO (ment)". Returns the length. */
size_t culet_internals_name(VALUE slot, char *name, size_t size);

/* Whether there is room for another one. */
bool culet_internals_has_room(void);

/* Follows a slot, which is live. Requires room. Calls no method, and allocates nothing. */
void culet_internals_add(VALUE slot, uint32_t sample);

/* Forgets all. */
void culet_internals_start(void);

/* Removes the samples of those that are gone. Requires the GVL, not during GC. */
void culet_internals_check(const struct culet_profile_api *api);

#endif
