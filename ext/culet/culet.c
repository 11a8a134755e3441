/*
 * The native extension: asks the malloc that serves this process who it is and
 * what it holds.
 *
 * Nothing is linked against an allocator. Every function is looked up at run
 * time in the object that defines the global `malloc`, because that is the one
 * all of Ruby's allocations go to, whatever the environment says was preloaded.
 */
#include <ruby.h> /* defines _GNU_SOURCE, hence first */

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#ifdef HAVE_MALLOC_H
#include <malloc.h>
#endif

/* mallinfo2 of glibc 2.33 and later; its header may be older than the library. */
struct info {
  size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

/* The functions that are looked up. */
typedef const char *text_function(void);
typedef int number_function(void);
typedef int mallctl_function(const char *, void *, size_t *, void *, size_t);
typedef const char *tc_version_function(int *, int *, const char **);
typedef struct info mallinfo2_function(void);
#ifdef HAVE_STRUCT_MALLINFO_UORDBLKS
typedef struct mallinfo mallinfo_function(void);
#endif

struct owner {
  void *base;       /* load address of the object that defines malloc */
  const char *path; /* its file; valid while it is loaded */
};

static int
find_owner(struct owner *owner)
{
  void *address = dlsym(RTLD_DEFAULT, "malloc");
  Dl_info info;

  if (address == NULL || dladdr(address, &info) == 0) return 0;
  owner->base = info.dli_fbase;
  owner->path = info.dli_fname;
  return 1;
}

/*
 * A function of the object that defines malloc; NULL where only some other
 * object has one of that name (glibc's unused mallinfo2 under jemalloc).
 */
static void *
function_of(const struct owner *owner, const char *name)
{
  void *address = dlsym(RTLD_DEFAULT, name);
  Dl_info info;

  if (address == NULL || dladdr(address, &info) == 0) return NULL;
  return info.dli_fbase == owner->base ? address : NULL;
}

/* ISO C has no conversion from object to function pointers, POSIX guarantees that they have one size. */
#define AS_FUNCTION(type, variable, pointer) \
  type *variable; \
  memcpy(&variable, &(pointer), sizeof(variable))

static VALUE
text(const char *string)
{
  return string == NULL ? Qnil : rb_obj_freeze(rb_utf8_str_new_cstr(string));
}

static VALUE
call_for_text(void *pointer)
{
  AS_FUNCTION(text_function, function, pointer);
  return text(function());
}

static VALUE
jemalloc_version(void *pointer)
{
  AS_FUNCTION(mallctl_function, mallctl, pointer);
  const char *version = NULL;
  size_t size = sizeof(version);
  VALUE full;

  if (mallctl("version", &version, &size, NULL, 0) != 0 || version == NULL) return Qnil;
  /* "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c": the part behind the number is the commit. */
  full = rb_utf8_str_new(version, (long)strcspn(version, "-"));
  return rb_obj_freeze(full);
}

static VALUE
tcmalloc_version(void *pointer)
{
  AS_FUNCTION(tc_version_function, version, pointer);
  int major = 0, minor = 0;
  const char *patch = NULL;
  version(&major, &minor, &patch);
  return rb_obj_freeze(rb_sprintf("%d.%d", major, minor));
}

static VALUE
mimalloc_version(void *pointer)
{
  AS_FUNCTION(number_function, mi_version, pointer);
  int version = mi_version();

  /* Two schemes: 209 is 2.0.9, 20401 is 2.4.1. */
  if (version < 1000) return rb_obj_freeze(rb_sprintf("%d.%d.%d", version / 100, version / 10 % 10, version % 10));
  return rb_obj_freeze(rb_sprintf("%d.%d.%d", version / 10000, version / 100 % 100, version % 100));
}

static void
identify(const struct owner *owner, const char **name, VALUE *version, int *active)
{
  void *pointer;

  *active = 0;
  *version = Qnil;
  if ((pointer = function_of(owner, "culet_version")) != NULL) {
    *name = "culet";
    *version = call_for_text(pointer);
    if ((pointer = function_of(owner, "culet_active")) != NULL) {
      AS_FUNCTION(number_function, is_active, pointer);
      *active = is_active() != 0;
    }
  } else if ((pointer = function_of(owner, "mi_version")) != NULL) {
    *name = "mimalloc";
    *version = mimalloc_version(pointer);
  } else if ((pointer = function_of(owner, "tc_version")) != NULL) {
    *name = "tcmalloc";
    *version = tcmalloc_version(pointer);
  } else if ((pointer = function_of(owner, "mallctl")) != NULL) {
    *name = "jemalloc";
    *version = jemalloc_version(pointer);
  } else if ((pointer = function_of(owner, "gnu_get_libc_version")) != NULL) {
    *name = "glibc";
    *version = call_for_text(pointer);
  } else {
    *name = "unknown";
  }
}

static VALUE
symbol(const char *name)
{
  return ID2SYM(rb_intern(name));
}

/*
 * The allocator that serves malloc in this process.
 *
 * Returns a frozen Hash:
 *   name:    "culet", "glibc", "jemalloc", "tcmalloc", "mimalloc" or "unknown"
 *   version: String, or nil where the library does not tell
 *   library: absolute path of the file that defines malloc, or nil
 *   active:  true when culet serves this process's allocations; false with the
 *            name "culet" means that it is loaded but passes all on to glibc
 */
static VALUE
culet_allocator(VALUE self)
{
  struct owner owner = {NULL, NULL};
  const char *name = "unknown";
  VALUE version = Qnil;
  VALUE result = rb_hash_new();
  int active = 0;

  if (find_owner(&owner)) identify(&owner, &name, &version, &active);
  rb_hash_aset(result, symbol("name"), text(name));
  rb_hash_aset(result, symbol("version"), version);
  rb_hash_aset(result, symbol("library"), text(owner.path));
  rb_hash_aset(result, symbol("active"), active ? Qtrue : Qfalse);
  return rb_obj_freeze(result);
}

static int
read_info(struct info *info)
{
  struct owner owner;
  void *pointer;

  if (!find_owner(&owner)) return 0;
  if ((pointer = function_of(&owner, "mallinfo2")) != NULL) {
    AS_FUNCTION(mallinfo2_function, ask, pointer);
    *info = ask();
    return 1;
  }
#ifdef HAVE_STRUCT_MALLINFO_UORDBLKS
  /*
   * glibc before 2.33. Its fields are ints that wrap: read as unsigned they hold up to 4 GiB. mimalloc and
   * tcmalloc have a mallinfo too, with other meanings, hence only glibc's is asked.
   */
  if (function_of(&owner, "gnu_get_libc_version") != NULL &&
      (pointer = function_of(&owner, "mallinfo")) != NULL) {
    AS_FUNCTION(mallinfo_function, ask, pointer);
    struct mallinfo old = ask();
    info->arena = (unsigned int)old.arena;
    info->hblks = (unsigned int)old.hblks;
    info->hblkhd = (unsigned int)old.hblkhd;
    info->uordblks = (unsigned int)old.uordblks;
    info->fordblks = (unsigned int)old.fordblks;
    return 1;
  }
#endif
  return 0;
}

static void
store(VALUE hash, const char *name, size_t value)
{
  rb_hash_aset(hash, symbol(name), SIZET2NUM(value));
}

/*
 * What malloc itself counts, by mallinfo2 (see mallinfo(3)).
 *
 * Returns a Hash of Integers:
 *   heap_bytes:  obtained from the kernel for the heap, large blocks aside
 *   used_bytes:  of these, in blocks that the program holds
 *   free_bytes:  of these, free, whether resident or returned
 *   large_blocks, large_bytes: blocks with a mapping of their own
 * or nil under an allocator that has no such call.
 */
static VALUE
culet_stats(VALUE self)
{
  struct info info = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  VALUE result;

  if (!read_info(&info)) return Qnil;
  result = rb_hash_new();
  store(result, "heap_bytes", info.arena);
  store(result, "used_bytes", info.uordblks);
  store(result, "free_bytes", info.fordblks);
  store(result, "large_blocks", info.hblks);
  store(result, "large_bytes", info.hblkhd);
  return result;
}

RUBY_FUNC_EXPORTED void
Init_culet(void)
{
  VALUE culet;

#ifdef HAVE_RB_EXT_RACTOR_SAFE
  rb_ext_ractor_safe(true);
#endif
  culet = rb_define_module("Culet");
  rb_define_singleton_method(culet, "allocator", culet_allocator, 0);
  rb_define_singleton_method(culet, "stats", culet_stats, 0);
}
