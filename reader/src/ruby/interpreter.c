#include "ruby/interpreter.h"

#include "base/text.h"
#include "process/elf_file.h"
#include "process/mapping_names.h"

#include <string.h>

static bool is_collector(const char *base)
{
    return culet_starts_with(base, "librubygc.");
}

static bool is_libruby(const char *base)
{
    return culet_starts_with(base, "libruby") && !is_collector(base);
}

/* A mapping of the file with the interpreter: libruby, or else the program. */
static const struct culet_mapping *find_interpreter(const struct culet_reading *reading)
{
    const struct culet_mapping *libruby =
        CULET_MAPPING_WHERE(&reading->maps, each, each->inode && is_libruby(culet_mapping_base(each->path)));

    return libruby
               ? libruby
               : CULET_MAPPING_WHERE(&reading->maps, each, each->inode && strcmp(each->path, reading->program) == 0);
}

bool culet_ruby_is_loaded(const struct culet_reading *reading)
{
    const struct culet_mapping *mapping = find_interpreter(reading);

    return mapping && (is_libruby(culet_mapping_base(mapping->path)) ||
                       culet_starts_with(culet_mapping_base(mapping->path), "ruby"));
}

void culet_ruby_read_version(const struct culet_reading *reading, char *version, size_t room)
{
    const struct culet_mapping *mapping = find_interpreter(reading);
    struct culet_elf elf;

    *version = 0;
    if (!mapping || !culet_elf_open(&elf, reading->target.pid, mapping))
        return;
    if (!culet_elf_text(&elf, "ruby_version", version, room))
        *version = 0;
    culet_elf_close(&elf);
}

const struct culet_mapping *culet_ruby_collector(const struct culet_reading *reading)
{
    return CULET_MAPPING_WHERE(&reading->maps, each, each->inode && is_collector(culet_mapping_base(each->path)));
}
