/* Which library serves malloc, and whether it is a known foreign allocator, whose heap is reported by pages. */
#include "base/text.h"
#include "malloc_records.h"
#include "process/elf_file.h"
#include "process/mapping_names.h"
#include "walker.h"

struct foreign_allocator {
    const char *name; /* NULL: unknown, in `library` */
    const char *library;
    bool in_program; /* linked statically */
};

/* Names of files, and of a symbol that identifies the allocator under another file name or in a program; NULL: it has
 * none. */
static const struct {
    const char *name, *file, *symbol;
} allocators[] = {
    {"jemalloc", "libjemalloc", "mallctl"},    {"tcmalloc", "libtcmalloc", "tc_version"},
    {"mimalloc", "libmimalloc", "mi_version"}, {"rpmalloc", "librpmalloc", "rpmalloc_global_statistics"},
    {"snmalloc", "libsnmalloc", NULL},
};
#define ALLOCATORS (sizeof allocators / sizeof *allocators)

/* ---- the C library ---- */

static bool is_libc(const struct culet_mapping *mapping)
{
    const char *name = culet_mapping_base(mapping->path);

    return mapping->inode && (culet_starts_with(name, "libc.so") || culet_starts_with(name, "libc-2.") ||
                              culet_starts_with(name, "ld-musl-"));
}

/* musl's one file is both loader and C library: ld-musl-x86_64.so.1, or libc.so in a directory of musl's. */
static bool is_musl(const struct culet_mapping *libc)
{
    return culet_starts_with(culet_mapping_base(libc->path), "ld-musl-") || strstr(libc->path, "-musl/");
}

/* The mapping with the malloc that the C library itself calls: through its global offset table, like any caller, so
 * the entry made by the loader identifies the active malloc. NULL: unknown. */
static const struct culet_mapping *find_malloc(struct culet_reading *reading, const struct culet_mapping *libc)
{
    struct culet_elf elf;
    uint64_t entry, function;

    if (!culet_elf_open(&elf, reading->target.pid, libc))
        return NULL;
    bool found = culet_elf_got_entry(&elf, "malloc", &entry);
    culet_elf_close(&elf);
    if (!found || !culet_memory_word(&reading->memory, libc->start + entry, &function))
        return NULL;
    return culet_maps_at(&reading->maps, function);
}

/* ---- names ---- */

static const char *name_by_symbol(const struct culet_reading *reading, const char *path)
{
    /* Of the file's mappings the first begins with the ELF header. */
    const struct culet_mapping *first =
        CULET_MAPPING_WHERE(&reading->maps, each, each->inode && !each->offset && strcmp(each->path, path) == 0);
    const char *name = NULL;
    struct culet_elf elf;

    if (!first || !culet_elf_open(&elf, reading->target.pid, first))
        return NULL;
    for (size_t i = 0; i < ALLOCATORS && !name; i++)
        if (allocators[i].symbol && culet_elf_defines(&elf, allocators[i].symbol))
            name = allocators[i].name;
    culet_elf_close(&elf);
    return name;
}

static const char *name_of(const struct culet_reading *reading, const char *path)
{
    for (size_t i = 0; i < ALLOCATORS; i++)
        if (culet_starts_with(culet_mapping_base(path), allocators[i].file))
            return allocators[i].name;
    return name_by_symbol(reading, path);
}

/* ---- the walker ---- */

static bool foreign_recognize(struct culet_reading *reading, void *context)
{
    struct foreign_allocator *foreign = context;
    const struct culet_mapping *libc = CULET_MAPPING_WHERE(&reading->maps, each, is_libc(each) && !each->offset),
                               *malloc = libc ? find_malloc(reading, libc) : NULL;

    if (reading->active_malloc)
        return false;
    reading->libc = malloc && is_libc(malloc) ? malloc->path : NULL;
    if (!libc) /* a program without a C library brings its own malloc */
        *foreign =
            (struct foreign_allocator){.library = reading->program, .name = name_by_symbol(reading, reading->program)};
    else if (malloc && malloc->inode && !is_libc(malloc))
        *foreign = (struct foreign_allocator){.library = malloc->path, .name = name_of(reading, malloc->path)};
    else {
        /* Of musl's the entry is not always known. */
        if (is_musl(libc)) {
            reading->libc = libc->path;
            reading->libc_is_musl = true;
        }
        return false;
    }
    foreign->in_program = strcmp(foreign->library, reading->program) == 0;
    if (foreign->name)
        reading->active_malloc = reading->malloc_by_pages = foreign->name;
    return foreign->name || !foreign->in_program;
}

static void foreign_write(struct culet_reading *reading, void *context)
{
    const struct foreign_allocator *foreign = context;

    if (!foreign->name && reading->active_malloc) /* a known allocator works below the unknown one */
        return;
    reading->active_malloc = foreign->name ? foreign->name : "unknown";
    culet_allocator_record_write(&(struct culet_allocator_record){
        .name = reading->active_malloc,
        .library = foreign->in_program ? "" : foreign->library,
        .by_pages = true,
        .why = foreign->name ? "Its blocks cannot be read from outside: unexplained anonymous memory is attributed to "
                               "its heap, page by page."
                             : "This library serves malloc, and is no known allocator."});
}

const struct culet_walker culet_foreign_allocators_walker = {.name = "foreign allocators",
                                                             .context_bytes = sizeof(struct foreign_allocator),
                                                             .recognize = foreign_recognize,
                                                             .write = foreign_write};
