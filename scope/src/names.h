/* names.h - what mappings are used for, and what they are called, where no walker knows better. */
#ifndef CULET_NAMES_H
#define CULET_NAMES_H

#include "maps.h"

/* The part of a path behind its last slash. */
const char *culet_names_base(const char *path);

/* Names every mapping that from..to lies in, as culet_mapping_name does with `label` as it is (NULL: none). */
void culet_names_range(const struct culet_maps *maps, uint64_t from, uint64_t to, const char *use, const char *label);

/* What a name that the kernel knows an anonymous mapping by ("[anon:Ruby:...]"), or a special one ("[vdso]"), says
 * about its use; NULL: nothing. */
const char *culet_names_special(const char *path);

#endif
