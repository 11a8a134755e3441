/* access.h - explains why a process cannot be read, and what to do. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Writes one sentence into `sentence` (`bytes`): what keeps this program from reading process `pid`, given the
 * errno. */
void culet_access_explain(pid_t pid, int error, char *sentence, size_t bytes);
