#include "common/active_malloc.h"

static void *find(const char *name, Dl_info *library)
{
    void *address = dlsym(RTLD_DEFAULT, name);

    return address != NULL && dladdr(address, library) != 0 ? address : NULL;
}

const char *culet_malloc_path(void)
{
    Dl_info library;

    return find("malloc", &library) != NULL ? library.dli_fname : NULL;
}

void *culet_malloc_function(const char *name)
{
    Dl_info active, library;
    void *address = find(name, &library);

    return address != NULL && find("malloc", &active) != NULL && library.dli_fbase == active.dli_fbase ? address : NULL;
}

const char *culet_malloc_name(void)
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
    const char *path = culet_malloc_path(), *slash = path != NULL ? strrchr(path, '/') : NULL;
    const char *file = slash != NULL ? slash + 1 : path;

    for (size_t i = 0; i < sizeof(allocators) / sizeof(allocators[0]); i++)
        if (culet_malloc_function(allocators[i].function) != NULL)
            return allocators[i].name;
    return file != NULL && strncmp(file, "libsnmalloc", strlen("libsnmalloc")) == 0 ? "snmalloc" : "unknown";
}
