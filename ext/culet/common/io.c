#include "common/io.h"

#include <errno.h>
#include <unistd.h>

int culet_write_all(int fd, const void *bytes, size_t length)
{
    for (const char *at = bytes; length > 0;) {
        ssize_t written = write(fd, at, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        at += written;
        length -= (size_t)written;
    }
    return 0;
}

int culet_read_all_at(int fd, void *bytes, size_t length, off_t offset)
{
    for (char *at = bytes; length > 0;) {
        ssize_t got = pread(fd, at, length, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : EIO;
        at += got;
        offset += got;
        length -= (size_t)got;
    }
    return 0;
}
