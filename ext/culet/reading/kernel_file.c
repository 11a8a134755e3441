#include "reading/kernel_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"

static bool read_descriptor(int descriptor, char *text, size_t size)
{
    size_t length = culet_read_all_at(descriptor, text, size - 1, 0);

    text[length] = '\0';
    return length > 0;
}

bool culet_kernel_file_read_path(const char *path, char *text, size_t size)
{
    int opened = path[0] == '\0' ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    bool read;

    text[0] = '\0';
    if (opened < 0)
        return false;
    read = read_descriptor(opened, text, size);
    close(opened);
    return read;
}

bool culet_kernel_file_read(const struct culet_kernel_file *file, char *text, size_t size)
{
    if (file->descriptor >= 0)
        return read_descriptor(file->descriptor, text, size);
    return culet_kernel_file_read_path(file->path, text, size);
}

uint64_t culet_kernel_file_number(const struct culet_kernel_file *file)
{
    char text[64];

    return culet_kernel_file_read(file, text, sizeof(text)) ? culet_number(text) : CULET_UNKNOWN;
}

uint64_t culet_number(const char *text)
{
    return *text >= '0' && *text <= '9' ? (uint64_t)strtoull(text, NULL, 10) : CULET_UNKNOWN;
}

uint64_t culet_number_of(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && (line[length] == ' ' || line[length] == ':'))
            return culet_number(line + length + strspn(line + length, " :\t"));
    }
    return CULET_UNKNOWN;
}

uint64_t culet_number_or_0(const char *text, const char *name)
{
    uint64_t number = culet_number_of(text, name);

    return number == CULET_UNKNOWN ? 0 : number;
}
