/* mapping_names.h - what the name of a mapping says about its use. */
#pragma once

/* The part of a path after its last slash. */
const char *culet_mapping_base(const char *path);

/* The use of an anonymous mapping that the kernel has a name for ("[anon:Ruby:...]"), or of a special one
 * ("[vdso]"); NULL: unknown. */
const char *culet_mapping_special_use(const char *path);
