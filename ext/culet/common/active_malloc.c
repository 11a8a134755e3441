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

void *culet_malloc_function(const struct active_malloc *library, const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    Dl_info info;

    if (address == NULL || dladdr(address, &info) == 0)
        return NULL;
    return info.dli_fbase == library->base ? address : NULL;
}
