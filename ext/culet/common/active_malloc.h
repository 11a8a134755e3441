/* common/active_malloc.h - the library that defines `malloc` in this process and serves all of Ruby's allocations,
 * whatever LD_PRELOAD says.
 *
 * The extension is not linked against an allocator: every function is looked up in that library at run time. */
#pragma once

#include <ruby.h>

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* Its file, valid while the library is loaded; NULL: it was not found. */
const char *culet_malloc_path(void);

/* The address of a function of the library. NULL if it has none, even if another library has one of that name, such as
 * glibc's unused mallinfo2 under jemalloc. */
void *culet_malloc_function(const char *name);

/* The name of the allocator: "culet", "mimalloc", "tcmalloc", "jemalloc", "rpmalloc", "snmalloc", "glibc", or "unknown". By
 * a function that only this library exports, since the file may have any name; snmalloc exports none, so it is known by
 * its file name. */
const char *culet_malloc_name(void);

/* jemalloc(3); gperftools/malloc_extension_c.h. */
typedef int culet_mallctl_function(const char *name, void *old_value, size_t *old_size, void *new_value,
                                   size_t new_size);
typedef int culet_tc_property_function(const char *name, size_t *value);

/* ISO C cannot convert object pointers to function pointers; POSIX guarantees that both have the same size. */
#define AS_FUNCTION(type, variable, pointer)                                                                           \
    type *variable;                                                                                                    \
    memcpy(&variable, &(void *){pointer}, sizeof(variable))

/* Defines a variable with a function of the active malloc; with one of any library, such as Ruby's that are not in its
 * headers. NULL where there is none. */
#define CULET_OF_MALLOC(type, variable, name) AS_FUNCTION(type, variable, culet_malloc_function(name))
#define CULET_OF_ANY(type, variable, name) AS_FUNCTION(type, variable, dlsym(RTLD_DEFAULT, name))
