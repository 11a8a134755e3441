/*
 * feature_index/scan.h - reads a folder of a load path, and all below it, into an index.
 */
#ifndef CULET_FEATURE_INDEX_SCAN_H
#define CULET_FEATURE_INDEX_SCAN_H

#include "feature_index/builder.h"

enum culet_scanned {
  CULET_SCANNED,    /* every file is in the index */
  CULET_UNREADABLE, /* it is there without its files: what is in it, or how much, is nothing that an index can keep up with */
  CULET_TOO_RECENT,      /* something in it changed just now: a further change might leave the same time; not in the index */
  CULET_GONE,       /* it is no folder, or may not be read; not in the index */
  CULET_NO_MEMORY     /* memory is short; not in the index */
};

/*
 * path: its real path, absolute
 *
 * Files and folders whose names begin with a dot are left out: whoever looks up has to leave such names out, too.
 */
enum culet_scanned culet_scan(struct culet_builder *builder, const char *path, const char *native_extension);

#endif
