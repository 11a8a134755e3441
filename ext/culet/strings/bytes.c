#include "strings/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_CAPACITY ((size_t)64 << 10)

int
culet_bytes_add(struct culet_bytes *gathered, const void *bytes, size_t length)
{
  size_t capacity = gathered->capacity == 0 ? FIRST_CAPACITY : gathered->capacity;
  void *moved;

  while (capacity - gathered->length < length) capacity *= 2;
  if (capacity != gathered->capacity) {
    if ((moved = realloc(gathered->bytes, capacity)) == NULL) return 0;
    gathered->bytes = moved;
    gathered->capacity = capacity;
  }
  if (length > 0) memcpy(gathered->bytes + gathered->length, bytes, length);
  gathered->length += length;
  return 1;
}

int
culet_bytes_write(struct culet_bytes *gathered, int fd)
{
  size_t done = 0;

  while (done < gathered->length) {
    ssize_t written = write(fd, gathered->bytes + done, gathered->length - done);
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) done += (size_t)written;
  }
  gathered->length = 0;
  return 0;
}

void
culet_bytes_free(struct culet_bytes *gathered)
{
  free(gathered->bytes);
  *gathered = (struct culet_bytes){NULL, 0, 0};
}
