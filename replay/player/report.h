/* report.h - prints a trace and its replay as one JSON document, with the keys of `culet replay --json`. */
#pragma once

#include "engine.h"

/* @param result of the replay; NULL for the trace alone */
void culet_report_print(const struct culet_operations *operations, const struct culet_replay_options *options,
                        const struct culet_replay_result *result);

/* Every operation, one per line: index, thread, name, block, bytes, and alignment. */
void culet_report_list(const struct culet_operations *operations);
