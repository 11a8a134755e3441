#include "strings/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "strings/digest.h"

/* what may be resident of the file, roughly: a fault maps the pages around too */
#define WINDOW ((size_t)4 << 20)

int culet_record_file_open(struct culet_record_file *file, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), error = 0;
    struct stat stat;
    void *bytes;

    *file = (struct culet_record_file){NULL, 0, -1, 0};
    if (fd < 0)
        return errno;
    if (fstat(fd, &stat) != 0) {
        error = errno;
    } else if (stat.st_size > 0) {
        bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (bytes == MAP_FAILED)
            error = errno;
        else
            *file = (struct culet_record_file){bytes, (size_t)stat.st_size, fd, 0};
    }
    if (file->fd < 0)
        close(fd);
    return error;
}

/* Whether the content has the size that the other fields imply. */
static int content_fits(const struct culet_string_record *record)
{
    uint64_t bytes = record->content_bytes;

    if ((record->flags & STRING_HAS_CONTENT) == 0)
        return bytes == 0;
    if ((record->flags & STRING_DIGEST) && (record->flags & STRING_HASHED))
        return bytes == STRINGS_DIGEST_BYTES;
    if (record->flags & STRING_DIGEST)
        return bytes >= STRINGS_DIGEST_BYTES && bytes <= STRINGS_DIGEST_BYTES + STRING_SAMPLE_BYTES;
    return bytes == record->length * (record->flags & STRING_HASHED ? STRINGS_LINK_BYTES : 1);
}

static int is_consistent(const struct culet_string_record *record)
{
    if (record->flags & ~(uint32_t)STRING_FLAGS_READ)
        return 0;
    if (record->flags & STRING_SITE)
        return 1;
    return record->length <= STRING_MAX_BYTES && record->held <= STRING_MAX_BYTES && record->slot <= record->held &&
           content_fits(record);
}

const struct culet_string_record *culet_record_file_record(struct culet_record_file *file, uint64_t offset)
{
    const struct culet_string_record *record;

    if (offset % 8 != 0 || offset > file->size || file->size - offset < sizeof(*record))
        return NULL;
    record = (const struct culet_string_record *)(file->bytes + offset);
    if (record->bytes > file->size - offset || record->bytes < culet_string_record_bytes(record->content_bytes))
        return NULL;
    return is_consistent(record) ? record : NULL;
}

void culet_record_file_passed(struct culet_record_file *file, const struct culet_string_record *record)
{
    size_t place = (size_t)((const unsigned char *)record - file->bytes);

    if (place >= file->released && place - file->released < WINDOW)
        return;
    (void)madvise((void *)file->bytes, file->size, MADV_DONTNEED); /* the pages stay in the page cache */
    file->released = place;
}

int culet_record_file_copy(const struct culet_record_file *file, uint64_t offset, size_t content_bytes,
                           unsigned char *content)
{
    return culet_read_all_at(file->fd, content, content_bytes, (off_t)(offset + sizeof(struct culet_string_record))) ==
           content_bytes;
}

void culet_record_file_close(struct culet_record_file *file)
{
    if (file->bytes != NULL)
        munmap((void *)file->bytes, file->size);
    if (file->fd >= 0)
        close(file->fd);
    *file = (struct culet_record_file){NULL, 0, -1, 0};
}
