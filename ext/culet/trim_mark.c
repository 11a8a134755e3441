#define _GNU_SOURCE

#include "trim_mark.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME_BYTES 32

static void *mark = MAP_FAILED;
static size_t mark_bytes;

void
culet_trim_mark(const char *mode)
{
  char name[NAME_BYTES];
  int file;

  if (mark != MAP_FAILED) munmap(mark, mark_bytes);
  mark = MAP_FAILED;
  snprintf(name, sizeof(name), "culet-trim:%s", mode);
  file = memfd_create(name, MFD_CLOEXEC);
  if (file < 0) return;
  mark_bytes = (size_t)sysconf(_SC_PAGESIZE);
  mark = mmap(NULL, mark_bytes, PROT_NONE, MAP_PRIVATE, file, 0);
  close(file);
}
