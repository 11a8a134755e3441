#include "common/active_malloc.h"

#include <dlfcn.h>

int culet_find_active_malloc(struct active_malloc *library)
{
    void *address = dlsym(RTLD_DEFAULT, "malloc");
    Dl_info info;

    if (address == NULL || dladdr(address, &info) == 0)
        return 0;
    library->base = info.dli_fbase;
    library->path = info.dli_fname;
    return 1;
}

const char *culet_malloc_name(const struct active_malloc *library)
{
    static const struct {
        const char *function, *name;
    } allocators[] = {
        {"culet_version", "culet"},
        {"mi_version", "mimalloc"},
        {"tc_version", "tcmalloc"},
        {"mallctl", "jemalloc"},
        {"rpmalloc_global_statistics", "rpmalloc"},
        {"gnu_get_libc_version", "glibc"},
    };
    const char *slash = strrchr(library->path, '/');
    const char *file = slash != NULL ? slash + 1 : library->path;

    for (size_t i = 0; i < sizeof(allocators) / sizeof(allocators[0]); i++)
        if (culet_malloc_function(library, allocators[i].function) != NULL)
            return allocators[i].name;
    return strncmp(file, "libsnmalloc", strlen("libsnmalloc")) == 0 ? "snmalloc" : "unknown";
}

void *culet_malloc_function(const struct active_malloc *library, const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    Dl_info info;

    if (address == NULL || dladdr(address, &info) == 0)
        return NULL;
    return info.dli_fbase == library->base ? address : NULL;
}
