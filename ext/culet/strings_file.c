#include "strings_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A fault maps the pages around too: fault_around_bytes of Linux, by default. */
#define AROUND ((size_t)64 << 10)
#define SMALLEST_WINDOW ((size_t)16 << 20)

int
culet_strings_file_open(struct culet_strings_file *file, const char *path)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC), error = 0;
  struct stat stat;
  void *bytes;

  *file = (struct culet_strings_file){NULL, 0, 0, 0};
  if (fd < 0) return errno;
  if (fstat(fd, &stat) != 0) {
    error = errno;
  } else if (stat.st_size > 0) {
    bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) {
      error = errno;
    } else {
      file->bytes = bytes;
      file->size = (size_t)stat.st_size;
      file->window = file->size / 8 > SMALLEST_WINDOW ? file->size / 8 : SMALLEST_WINDOW;
    }
  }
  close(fd);
  return error;
}

const struct culet_string_record *
culet_strings_file_record(struct culet_strings_file *file, uint64_t offset)
{
  const struct culet_string_record *record = (const struct culet_string_record *)(file->bytes + offset);

  if (offset + sizeof(*record) > file->size || offset % 8 != 0) return NULL;
  if (record->bytes > file->size - offset || record->bytes < culet_string_record_bytes(record->content_bytes)) return NULL;
  return record;
}

static void
touch(struct culet_strings_file *file, size_t bytes)
{
  file->touched += bytes;
  if (file->touched < file->window) return;
  (void)madvise((void *)file->bytes, file->size, MADV_DONTNEED); /* the file has them still; a refusal costs memory only */
  file->touched = 0;
}

void
culet_strings_file_passed(struct culet_strings_file *file, const struct culet_string_record *record)
{
  touch(file, record->bytes);
}

void
culet_strings_file_visited(struct culet_strings_file *file)
{
  touch(file, AROUND);
}

void
culet_strings_file_close(struct culet_strings_file *file)
{
  if (file->bytes != NULL) munmap((void *)file->bytes, file->size);
  *file = (struct culet_strings_file){NULL, 0, 0, 0};
}
