/* report.h - figures as one JSON document on stdout. Names and units are those of `culet replay --json`. */
#ifndef CULET_REPORT_H
#define CULET_REPORT_H

#include "player.h"

/* Of the trace. With `performance`, of the play as well; it may be NULL. */
void culet_report(const struct culet_script *script, const struct culet_settings *settings,
                  const struct culet_performance *performance);

/* Every operation, one to a line: its index, thread, name, block, bytes, and alignment. */
void culet_report_operations(const struct culet_script *script);

#endif
