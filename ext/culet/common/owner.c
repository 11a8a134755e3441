#include "common/owner.h" /* ruby.h defines _GNU_SOURCE, hence first */

#include <dlfcn.h>

int
culet_find_owner(struct owner *owner)
{
  void *address = dlsym(RTLD_DEFAULT, "malloc");
  Dl_info info;

  if (address == NULL || dladdr(address, &info) == 0) return 0;
  owner->base = info.dli_fbase;
  owner->path = info.dli_fname;
  return 1;
}

void *
culet_function_of(const struct owner *owner, const char *name)
{
  void *address = dlsym(RTLD_DEFAULT, name);
  Dl_info info;

  if (address == NULL || dladdr(address, &info) == 0) return NULL;
  return info.dli_fbase == owner->base ? address : NULL;
}

VALUE
culet_symbol(const char *name)
{
  return ID2SYM(rb_intern(name));
}
