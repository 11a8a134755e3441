#include "trim/mark.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME_BYTES 32
#define PREFIX "culet-trim:"

static void *mark = MAP_FAILED;
static size_t mark_bytes;

void culet_trim_mark(const char *mode)
{
    char name[NAME_BYTES];
    int file;

    if (mark != MAP_FAILED)
        munmap(mark, mark_bytes);
    mark = MAP_FAILED;
    snprintf(name, sizeof(name), PREFIX "%s", mode);
    file = memfd_create(name, MFD_CLOEXEC);
    if (file < 0)
        return;
    mark_bytes = (size_t)sysconf(_SC_PAGESIZE);
    mark = mmap(NULL, mark_bytes, PROT_NONE, MAP_PRIVATE, file, 0);
    close(file);
}

int culet_trim_mark_exists(void)
{
    FILE *maps = mark == MAP_FAILED ? fopen("/proc/self/maps", "re") : NULL;
    char *line = NULL;
    size_t capacity = 0;
    int found = 0;

    if (maps == NULL)
        return 0;
    while (!found && getline(&line, &capacity, maps) > 0)
        found = strstr(line, "/memfd:" PREFIX) != NULL;
    free(line);
    fclose(maps);
    return found;
}
