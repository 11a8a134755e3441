/* The native extension: Culet.allocator, and the initialization of all parts. What loads code is another one, boot/ext. */
#include <ruby.h>

#include <string.h>

#include "agent/agent.h"
#include "agent/unused_reporter.h"
#include "blackbox/blackbox.h"
#include "common/active_malloc.h"
#include "common/mark.h"
#include "reading/malloc_stats.h"
#include "common/tracer.h"
#include "common/values.h"
#include "common/vm_lock.h"
#include "comparison/comparison.h"
#include "limit/limit.h"
#include "profile/ruby_profile.h"
#include "reading/reading.h"
#include "retain/retain.h"
#include "strings/strings.h"
#include "trim/trim.h"

/* Functions of the active malloc. */
typedef const char *text_function(void);
typedef int number_function(void);
typedef const char *tc_version_function(int *, int *, const char **);

/* What is shown of a commit: "-g" and ten digits. */
#define JEMALLOC_COMMIT 12

static VALUE text(const char *string)
{
    return string == NULL ? Qnil : rb_obj_freeze(rb_utf8_str_new_cstr(string));
}

static VALUE call_for_text(void *pointer)
{
    AS_FUNCTION(text_function, function, pointer);
    return text(function());
}

static VALUE jemalloc_version(void *pointer)
{
    AS_FUNCTION(culet_mallctl_function, mallctl, pointer);
    const char *version = NULL;
    size_t size = sizeof(version);
    const char *commit;
    size_t length;

    if (mallctl("version", &version, &size, NULL, 0) != 0 || version == NULL)
        return Qnil;
    /* Version, commits since then, and commit: "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c". A build from a copy
     * without tags has "0.0.0-0-g000000missing_version_try_git_fetch_tags". */
    if (strncmp(version, "0.0.0-", strlen("0.0.0-")) == 0)
        return Qnil;
    length = strcspn(version, "-");
    if (strncmp(version + length, "-0-", strlen("-0-")) != 0 && (commit = strstr(version, "-g")) != NULL)
        length = (size_t)(commit - version) + strnlen(commit, JEMALLOC_COMMIT);
    return rb_obj_freeze(rb_utf8_str_new(version, (long)length));
}

static VALUE tcmalloc_version(void *pointer)
{
    AS_FUNCTION(tc_version_function, version, pointer);
    int major = 0, minor = 0;
    const char *patch = NULL;
    version(&major, &minor, &patch);
    return rb_obj_freeze(rb_sprintf("%d.%d%s", major, minor, patch != NULL ? patch : "")); /* patch: "" or ".1" */
}

static VALUE mimalloc_version(void *pointer)
{
    AS_FUNCTION(number_function, mi_version, pointer);
    int version = mi_version();

    /* Two schemes: 209 is 2.0.9, 20401 is 2.4.1. */
    if (version < 1000)
        return rb_obj_freeze(rb_sprintf("%d.%d.%d", version / 100, version / 10 % 10, version % 10));
    return rb_obj_freeze(rb_sprintf("%d.%d.%d", version / 10000, version / 100 % 100, version % 100));
}

/* The version by the function of the library that reports it, or nil. */
static VALUE version_of(const struct active_malloc *library)
{
    void *pointer;

    if ((pointer = culet_malloc_function(library, "culet_version")) != NULL)
        return call_for_text(pointer);
    if ((pointer = culet_malloc_function(library, "mi_version")) != NULL)
        return mimalloc_version(pointer);
    if ((pointer = culet_malloc_function(library, "tc_version")) != NULL)
        return tcmalloc_version(pointer);
    if ((pointer = culet_malloc_function(library, "mallctl")) != NULL)
        return jemalloc_version(pointer);
    if ((pointer = culet_malloc_function(library, "gnu_get_libc_version")) != NULL)
        return call_for_text(pointer);
    return Qnil;
}

/* Whether the library is culet and serves the process. */
static int is_culet_active(const struct active_malloc *library)
{
    void *pointer = culet_malloc_function(library, "culet_active");

    AS_FUNCTION(number_function, is_active, pointer);
    return pointer != NULL && is_active() != 0;
}

/* Culet.allocator: the allocator that serves this process. Returns a frozen Hash:
 *   name:    "culet", "glibc", "jemalloc", "tcmalloc", "mimalloc", "rpmalloc", "snmalloc" or "unknown"
 *   version: String; nil if the library does not report it
 *   library: absolute path of the file that defines malloc, or nil
 *   active:  true if culet serves the process; false with the name "culet" if it is loaded but passes all calls on to
 *            glibc */
static VALUE culet_allocator(VALUE self)
{
    struct active_malloc library = {NULL, NULL};
    const char *name = "unknown";
    VALUE version = Qnil;
    VALUE result = rb_hash_new();
    int active = 0;

    if (culet_find_active_malloc(&library)) {
        name = culet_malloc_name(&library);
        version = version_of(&library);
        active = is_culet_active(&library);
    }
    culet_hash_set(result, "name", text(name));
    culet_hash_set(result, "version", version);
    culet_hash_set(result, "library", text(library.path));
    culet_hash_set(result, "active", active ? Qtrue : Qfalse);
    return rb_obj_freeze(result);
}

RUBY_FUNC_EXPORTED void Init_culet(void)
{
    VALUE culet;

    rb_ext_ractor_safe(true);
    culet_main_ractor_prepare();
    culet = rb_define_module("Culet");
    rb_define_singleton_method(culet, "allocator", culet_allocator, 0);
    rb_define_singleton_method(culet, "stats", culet_stats_of_malloc, 0);
    rb_define_private_method(rb_singleton_class(culet), "malloc_totals", culet_malloc_totals, 0);
    rb_define_private_method(rb_singleton_class(culet), "malloc_in_use", culet_malloc_in_use, 0);
    rb_define_private_method(rb_singleton_class(culet), "mark", culet_mark_once, 1);
    rb_define_private_method(rb_singleton_class(culet), "admit_reader", culet_admit_reader, 1);
    culet_init_reading(culet);
    culet_init_agent(culet);
    culet_init_unused_reporter(culet);
    culet_init_retain(culet);
    culet_init_strings(culet);
    culet_init_limit(culet);
    culet_init_profile(culet);
    culet_init_blackbox(culet);
    culet_init_trim(culet);
    culet_init_comparison(culet);
}
