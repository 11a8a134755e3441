/* access.h - why a process may not be read, and the way round. */
#ifndef CULET_ACCESS_H
#define CULET_ACCESS_H

#include <stddef.h>
#include <sys/types.h>

/* One sentence into `sentence` (room for `bytes`): what keeps this program from the memory of process `pid`. `refused`:
 * the errno that it got. */
void culet_access_why(pid_t pid, int refused, char *sentence, size_t bytes);

#endif
