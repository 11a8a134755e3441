#define _GNU_SOURCE
#include "requires_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WINDOW ((size_t)1 << 20)
#define LARGEST_NUMBER 1000

static char folder[PATH_MAX];
static char path[PATH_MAX];
static pid_t owner;     /* whose window it is; 0: nobody's yet */
static char *window;    /* NULL: none */
static size_t used;     /* of the window */
static off_t window_at; /* in the file */
static int given_up;

void
culet_requires_file_in(const char *name)
{
  snprintf(folder, sizeof(folder), "%s", name);
}

static int
give_up(const char *what, int error)
{
  char words[PATH_MAX + 200];
  int length;

  if (!given_up) {
    length = snprintf(words, sizeof(words), "culet: recording what is required ends here: cannot %s in %s: %s\n", what, folder, strerror(error));
    if (write(STDERR_FILENO, words, (size_t)length) < 0) given_up = 2; /* there is nobody to tell */
  }
  given_up = 1;
  window = NULL;
  return 0;
}

/* By name each time: programs close descriptors that they do not know, or count on their numbers. */
static int
map_window(off_t at, int flags)
{
  int file = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
  int error;
  void *got;

  if (file < 0) return errno == EEXIST ? -1 : give_up("make a file", errno);
  error = posix_fallocate(file, at, (off_t)WINDOW);
  if (error != 0) {
    close(file);
    return give_up("reserve space", error);
  }
  got = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, file, at);
  error = errno;
  close(file);
  if (got == MAP_FAILED) return give_up("map a file", error);
  if (window != NULL) munmap(window, WINDOW);
  window = got;
  window_at = at;
  used = 0;
  return 1;
}

/* A program that is executed in a process's place finds that process's file there, and takes the next number. */
static int
begin(void)
{
  int made = -1;

  if (window != NULL) munmap(window, WINDOW); /* the parent's, inherited by a fork */
  window = NULL;
  owner = getpid();
  for (int number = 0; made < 0 && number < LARGEST_NUMBER; number++) {
    if (snprintf(path, sizeof(path), "%s/%d-%d.jsonl", folder, (int)owner, number) >= (int)sizeof(path)) return give_up("name a file", ENAMETOOLONG);
    made = map_window(0, O_CREAT | O_EXCL);
  }
  return made < 0 ? give_up("make a file", EEXIST) : made;
}

int
culet_requires_file_begun(void)
{
  return window != NULL && owner == getpid();
}

int
culet_requires_file_ready(void)
{
  if (given_up) return 0;
  if (culet_requires_file_begun()) return 1;
  return begin() ? 2 : 0;
}

void
culet_requires_file_add(const char *bytes, size_t length)
{
  while (length > 0 && window != NULL) {
    size_t part = length < WINDOW - used ? length : WINDOW - used;

    memcpy(window + used, bytes, part);
    used += part;
    bytes += part;
    length -= part;
    if (used == WINDOW) map_window(window_at + (off_t)WINDOW, 0);
  }
}
