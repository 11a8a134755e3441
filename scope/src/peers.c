/* Which library serves malloc, and whether it is an allocator that is known by name. */
#include "elf_file.h"
#include "names.h"
#include "scope.h"
#include "stream.h"

#include <string.h>

static struct {
    const char *name;    /* NULL: an allocator that nobody knows, in `library` */
    const char *library;
    bool in_program;     /* linked into it */
} peer;

/* Names of files, and of a symbol that tells one under another name or linked into a program. */
static const struct {
    const char *name, *file, *symbol;
} known[] = {
    {"jemalloc", "libjemalloc", "mallctl"},
    {"tcmalloc", "libtcmalloc", "tc_version"},
    {"mimalloc", "libmimalloc", "mi_version"},
    {"rpmalloc", "librpmalloc", "rpmalloc_global_statistics"},
};
#define KNOWN (sizeof known / sizeof *known)

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool is_libc(const struct culet_mapping *mapping)
{
    const char *name = culet_names_base(mapping->path);

    return mapping->inode && (starts_with(name, "libc.so") || starts_with(name, "libc-2.") || starts_with(name, "ld-musl-"));
}

/* Its one file is loader and C library: ld-musl-x86_64.so.1, or libc.so in a folder of musl's. */
static bool is_musl(const struct culet_mapping *libc)
{
    return starts_with(culet_names_base(libc->path), "ld-musl-") || strstr(libc->path, "-musl/");
}

/* The first mapping of the file: it begins with the ELF header. */
static const struct culet_mapping *first_of(const struct culet_scope *scope, const char *path)
{
    for (size_t i = 0; i < scope->maps.count; i++)
        if (scope->maps.all[i].inode && scope->maps.all[i].offset == 0 && strcmp(scope->maps.all[i].path, path) == 0)
            return &scope->maps.all[i];
    return NULL;
}

static const struct culet_mapping *find_libc(const struct culet_scope *scope)
{
    for (size_t i = 0; i < scope->maps.count; i++)
        if (is_libc(&scope->maps.all[i]) && scope->maps.all[i].offset == 0)
            return &scope->maps.all[i];
    return NULL;
}

/* The mapping with the malloc that the C library itself calls. It does so by its global offset table, as everybody else, and
 * the loader has filled in whose it is. NULL: not known. */
static const struct culet_mapping *find_server(struct culet_scope *scope, const struct culet_mapping *libc)
{
    struct culet_elf elf;
    uint64_t slot, function;

    if (!culet_elf_open(&elf, scope->target.pid, libc))
        return NULL;
    bool known_slot = culet_elf_slot(&elf, "malloc", &slot);
    culet_elf_close(&elf);
    if (!known_slot || !culet_memory_word(&scope->memory, libc->start + slot, &function))
        return NULL;
    return culet_maps_at(&scope->maps, function);
}

static const char *name_by_symbol(const struct culet_scope *scope, const char *path)
{
    const struct culet_mapping *mapping = first_of(scope, path);
    const char *name = NULL;
    struct culet_elf elf;

    if (!mapping || !culet_elf_open(&elf, scope->target.pid, mapping))
        return NULL;
    for (size_t i = 0; i < KNOWN && !name; i++)
        if (culet_elf_defines(&elf, known[i].symbol))
            name = known[i].name;
    culet_elf_close(&elf);
    return name;
}

static const char *name_of(const struct culet_scope *scope, const char *path)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (starts_with(culet_names_base(path), known[i].file))
            return known[i].name;
    return name_by_symbol(scope, path);
}

/* A library that is no C library serves malloc. */
static void take_library(const struct culet_scope *scope, const struct culet_mapping *server)
{
    peer.library = server->path;
    peer.name = name_of(scope, server->path);
}

/* Without a C library of its own the program brings all it needs. */
static void take_program(const struct culet_scope *scope)
{
    peer.library = scope->program;
    peer.name = name_by_symbol(scope, scope->program);
}

static bool peers_recognise(struct culet_scope *scope)
{
    const struct culet_mapping *libc = find_libc(scope), *server = libc ? find_server(scope, libc) : NULL;

    if (scope->served)
        return false;
    scope->libc = server && is_libc(server) ? server->path : NULL;
    if (!libc)
        take_program(scope);
    else if (server && server->inode && !is_libc(server))
        take_library(scope, server);
    else if (is_musl(libc))
        peer.library = libc->path, peer.name = "musl";
    else
        return false;
    peer.in_program = strcmp(peer.library, scope->program) == 0;
    if (peer.name)
        scope->served = scope->by_pages = peer.name;
    return peer.name || !peer.in_program;
}

static void peers_walk(struct culet_scope *scope)
{
    (void)scope;
}

static void peers_tell(struct culet_scope *scope)
{
    struct culet_json json;

    if (!peer.name && scope->served) /* one that is known works below the one that is not */
        return;
    culet_json_begin(&json, "allocator");
    culet_json_text(&json, "name", peer.name ? peer.name : "unknown");
    culet_json_text(&json, "library", peer.in_program ? "" : peer.library);
    culet_json_text(&json, "level", "pages");
    culet_json_text(&json, "why",
                    peer.name ? "Its blocks cannot be read from outside: memory that nothing else accounts for is taken for "
                                "its heap, page by page."
                              : "This library serves malloc, and it is no allocator that is known here.");
    culet_json_end(&json);
    scope->served = peer.name ? peer.name : "unknown";
}

const struct culet_walker culet_peers_walker = {
    .name = "peers", .recognise = peers_recognise, .walk = peers_walk, .tell = peers_tell};
