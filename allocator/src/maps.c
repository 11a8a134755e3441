#define _GNU_SOURCE
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A line as it is read: "START-END rw-p 0 0:0 0 NAME". */
struct line {
    struct culet_mapping mapping;
    enum { START, END, DETAILS, NAME } field;
    size_t length; /* of the name */
};

static uintptr_t digit(char c)
{
    return (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void add(struct line *line, char c)
{
    struct culet_mapping *mapping = &line->mapping;

    if (line->field <= END) {
        uintptr_t *address = line->field == START ? &mapping->start : &mapping->end;
        if (c == '-' || c == ' ')
            line->field++;
        else
            *address = *address << 4 | digit(c);
        return;
    }
    /* Nothing before the name has one of these. */
    if (c == '/' || c == '[')
        line->field = NAME;
    if (line->field == NAME && line->length < sizeof mapping->name - 1)
        mapping->name[line->length++] = c;
}

bool culet_maps_find(uintptr_t address, struct culet_mapping *found)
{
    char buffer[1024];
    struct line line = {0};
    bool done = false;
    int saved = errno;
    long got;

    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !done && (got = syscall(SYS_read, fd, buffer, sizeof buffer)) > 0)
        for (long i = 0; i < got && !done; i++) {
            if (buffer[i] != '\n') {
                add(&line, buffer[i]);
                continue;
            }
            done = line.mapping.start <= address && address < line.mapping.end;
            *found = line.mapping;
            line = (struct line){0};
        }
    if (fd >= 0)
        syscall(SYS_close, fd);
    errno = saved;
    return done;
}
