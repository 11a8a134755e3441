#include "common/mark.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME_BYTES 32
#define PREFIX "culet-"

void *culet_mark(const char *name)
{
    char text[NAME_BYTES];
    void *mark;
    int file;

    snprintf(text, sizeof(text), PREFIX "%s", name);
    file = memfd_create(text, MFD_CLOEXEC);
    if (file < 0)
        return MAP_FAILED;
    mark = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE, MAP_PRIVATE, file, 0);
    close(file);
    return mark;
}

void culet_unmark(void *mark)
{
    if (mark != MAP_FAILED)
        munmap(mark, (size_t)sysconf(_SC_PAGESIZE));
}

int culet_mark_exists(const char *prefix)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char text[NAME_BYTES + sizeof("/memfd:")], *line = NULL;
    size_t capacity = 0;
    int found = 0;

    if (maps == NULL)
        return 0;
    snprintf(text, sizeof(text), "/memfd:" PREFIX "%s", prefix);
    while (!found && getline(&line, &capacity, maps) > 0)
        found = strstr(line, text) != NULL;
    free(line);
    fclose(maps);
    return found;
}

VALUE culet_mark_once(VALUE self, VALUE name)
{
    const char *text = StringValueCStr(name);

    if (!culet_mark_exists(text))
        culet_mark(text);
    return Qnil;
}
