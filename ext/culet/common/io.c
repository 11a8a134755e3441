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

size_t culet_read_all_at(int fd, void *bytes, size_t length, off_t offset)
{
    size_t done = 0;
    ssize_t got = 1;

    while (done < length && got != 0) {
        got = pread(fd, (char *)bytes + done, length - done, offset + (off_t)done);
        if (got < 0 && errno != EINTR)
            return 0;
        if (got > 0)
            done += (size_t)got;
    }
    return done;
}
