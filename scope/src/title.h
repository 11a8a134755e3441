#ifndef CULET_SCOPE_TITLE_H
#define CULET_SCOPE_TITLE_H

#include <stddef.h>
#include <sys/types.h>

/* The title that a process has given itself by writing over the words it was started with, as Puma's master and workers do:
 * one word with spaces in it. Arguments are never told, as they may be secret. `text` gets at most `bytes` with the NUL; ""
 * where the process has no title of its own, or may not be asked. */
void culet_title_read(pid_t pid, char *text, size_t bytes);

#endif
