/* agent/strings.h - the strings of this process. */
#pragma once

#include <ruby.h>

#include <stdint.h>

#define CULET_STRINGS_END_BYTES 256

struct culet_strings_options {
    int content;          /* whether to report the strings' bytes instead of digests */
    uint64_t most_bytes;  /* of the answer */
    double limit_seconds; /* of CPU time */
};

/* The reporter of allocation sites: ObjectSpace if objspace is loaded, else Qnil. Before the fork. May raise. */
VALUE culet_strings_sites(void);

/* Writes the reachable strings of this process, which is a forked copy of the program, as records (strings/record.h),
 * then CULET_STRINGS_END_BYTES of JSON and blanks: {"kind":"strings","strings":how many,"fork_seconds":...}
 *
 * sites: of culet_strings_sites; fork_seconds: how long the fork took; output: a descriptor
 *
 * Returns NULL, or a sentence on why not. */
const char *culet_strings_write(const struct culet_strings_options *options, VALUE sites, double fork_seconds,
                                int output);
