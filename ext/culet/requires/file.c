#define _GNU_SOURCE
#include "requires/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST_NUMBER 1000

static char folder[PATH_MAX];
static char path[PATH_MAX];
static pid_t owner;    /* whose file it is; 0: nobody's yet */
static off_t written;  /* bytes of it */
static int begun;      /* it is there, and goes on */
static int given_up;

void
culet_requires_file_in(const char *name)
{
  snprintf(folder, sizeof(folder), "%s", name);
}

static int
give_up(const char *what, const char *why)
{
  char words[PATH_MAX + 200];
  int length;

  if (!given_up) {
    length = snprintf(words, sizeof(words), "culet: recording what is required ends here: cannot %s in %s: %s\n", what, folder, why);
    if (write(STDERR_FILENO, words, (size_t)length) < 0) given_up = 2; /* there is nobody to tell */
  }
  given_up = 1;
  begun = 0;
  return 0;
}

/* A program that is executed in a process's place finds that process's file there, and takes the next number. */
static int
begin(void)
{
  begun = 0;
  owner = getpid();
  written = 0;
  for (int number = 0; number < LARGEST_NUMBER; number++) {
    if (snprintf(path, sizeof(path), "%s/%d-%d.jsonl", folder, (int)owner, number) >= (int)sizeof(path)) return give_up("name a file", strerror(ENAMETOOLONG));
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) {
      close(file);
      return begun = 1;
    }
    if (errno != EEXIST) break;
  }
  return give_up("make a file", strerror(errno));
}

int
culet_requires_file_begun(void)
{
  return begun && owner == getpid();
}

int
culet_requires_file_ready(void)
{
  if (given_up) return 0;
  if (culet_requires_file_begun()) return 1;
  return begin() ? 2 : 0;
}

/* Returns NULL, or why not. The kernel ends a process that writes beyond its limit, so that is looked at first. */
static const char *
append(int file, const char *bytes, size_t length)
{
  struct rlimit most;
  struct stat status;

  if (fstat(file, &status) != 0) return strerror(errno);
  if (status.st_size < written) return "its file was cut off";
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && (rlim_t)written + length > most.rlim_cur) return strerror(EFBIG);
  while (length > 0) {
    ssize_t put = pwrite(file, bytes, length, written);
    if (put <= 0 && errno != EINTR) return strerror(put < 0 ? errno : EIO);
    if (put <= 0) continue;
    bytes += put;
    length -= (size_t)put;
    written += put;
  }
  return NULL;
}

/* By name each time: programs close descriptors that they do not know, or count on their numbers. */
void
culet_requires_file_add(const char *bytes, size_t length)
{
  const char *wrong;
  int file;

  if (length == 0 || !begun) return;
  file = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  wrong = file < 0 ? strerror(errno) : append(file, bytes, length);
  if (file >= 0) close(file);
  if (wrong != NULL) give_up("write", wrong);
}
