/* feature_index/scan.h - reads a folder of the load path, and all below it, into an index. */
#pragma once

#include <string.h>

#include "feature_index/builder.h"

enum culet_scanned {
    CULET_SCANNED,    /* all files are in the index */
    CULET_UNREADABLE, /* in the index without its files: too many, or of a type that the index cannot represent */
    CULET_TOO_RECENT, /* changed just now: a further change might leave the same time; not in the index */
    CULET_GONE,       /* not a folder, or not readable; not in the index */
    CULET_NO_MEMORY   /* not in the index */
};

/* Whether a name has something before this end. */
static inline int culet_scan_ends_with(const char *name, size_t length, const char *end)
{
    size_t wanted = strlen(end);

    return length > wanted && memcmp(name + length - wanted, end, wanted) == 0;
}

/* Reads a folder by its real path. Names that start with a dot are omitted, so a lookup must not answer for them. */
enum culet_scanned culet_scan(struct culet_builder *builder, const char *path);
