#include "limit/text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int culet_text_read(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length;

    text[0] = '\0';
    if (fd < 0)
        return 0;
    length = pread(fd, text, size - 1, 0);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

uint64_t culet_text_number(const char *text)
{
    return *text >= '0' && *text <= '9' ? (uint64_t)strtoull(text, NULL, 10) : UINT64_MAX;
}

uint64_t culet_text_field(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0)
            continue;
        line += length;
        line += strspn(line, " :\t");
        return culet_text_number(line) == UINT64_MAX ? 0 : culet_text_number(line);
    }
    return 0;
}
