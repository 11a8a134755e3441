#include "reading/glibc_resident.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sampler/core/residency.h"
#include "reading/kernel_file.h"

/* The main arena is [heap]. Another one has heaps of at most 64 MiB (HEAP_MAX_SIZE in glibc's arena.c) at a multiple of
 * that: committed memory, and inaccessible address space up to the next multiple. One that is committed whole cannot be
 * told from other memory, nor can a main arena without brk; then the sum is not what mallinfo2 says. */
#define HEAP_BYTES (UINT64_C(64) << 20)
/* Blocks that come and go between the two readings. */
#define TOLERANCE_BYTES (UINT64_C(1) << 20)
#define LINE_BYTES 512

struct range {
    uint64_t start, end;
};

/* Bytes of the arenas, and their resident bytes. */
struct sum {
    struct culet_residency source;
    uint64_t bytes, resident;
    bool unknown;
};

static void add(struct sum *sum, struct range range)
{
    uint64_t resident = 0, bytes = range.end - range.start;

    sum->unknown |= !culet_residency_count(&sum->source, (const void *)(uintptr_t)range.start, bytes, &resident);
    sum->bytes += bytes;
    sum->resident += resident;
}

/* Adds the arenas that a line of maps ends. before: the accessible anonymous memory in front of it. */
static void add_line(struct sum *sum, const char *line, struct range *before)
{
    struct range range;
    char access[5], path[LINE_BYTES] = "";
    int fields =
        sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %511[^\n]", &range.start, &range.end, access, path);

    if (fields == 4 && strcmp(path, "[heap]") == 0)
        add(sum, range);
    if (fields == 3 && strcmp(access, "---p") == 0 && range.end % HEAP_BYTES == 0 && before->end == range.start &&
        range.end - range.start < HEAP_BYTES && before->start <= range.end - HEAP_BYTES)
        add(sum, (struct range){range.end - HEAP_BYTES, range.start});
    *before = fields == 3 && strcmp(access, "rw-p") == 0 ? range : (struct range){0, 0};
}

uint64_t culet_glibc_resident(uint64_t arena_bytes)
{
    struct sum sum = {.bytes = 0};
    struct range before = {0, 0};
    char line[LINE_BYTES];
    FILE *maps = fopen("/proc/self/maps", "re");

    if (maps == NULL)
        return CULET_UNKNOWN;
    culet_residency_open(&sum.source);
    while (fgets(line, sizeof(line), maps) != NULL)
        add_line(&sum, line, &before);
    culet_residency_close(&sum.source);
    fclose(maps);
    if (sum.unknown || sum.bytes + TOLERANCE_BYTES < arena_bytes || arena_bytes + TOLERANCE_BYTES < sum.bytes)
        return CULET_UNKNOWN;
    return sum.resident;
}
