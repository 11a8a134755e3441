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

/* Length of a shortened commit: "-g" and ten digits. */
#define JEMALLOC_COMMIT 12

static VALUE text(const char *string)
{
    return string == NULL ? Qnil : rb_obj_freeze(rb_utf8_str_new_cstr(string));
}

static VALUE jemalloc_version(culet_mallctl_function *mallctl)
{
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

static VALUE tcmalloc_version(tc_version_function *version)
{
    int major = 0, minor = 0;
    const char *patch = NULL;
    version(&major, &minor, &patch);
    return rb_obj_freeze(rb_sprintf("%d.%d%s", major, minor, patch != NULL ? patch : "")); /* patch: "" or ".1" */
}

static VALUE mimalloc_version(int version)
{
    /* Two schemes: 209 is 2.0.9, 20401 is 2.4.1. */
    if (version < 1000)
        return rb_obj_freeze(rb_sprintf("%d.%d.%d", version / 100, version / 10 % 10, version % 10));
    return rb_obj_freeze(rb_sprintf("%d.%d.%d", version / 10000, version / 100 % 100, version % 100));
}

/* The version by the function of the library that reports it, or nil. */
static VALUE version(void)
{
    CULET_OF_MALLOC(text_function, culet, "culet_version");
    CULET_OF_MALLOC(number_function, mimalloc, "mi_version");
    CULET_OF_MALLOC(tc_version_function, tcmalloc, "tc_version");
    CULET_OF_MALLOC(culet_mallctl_function, jemalloc, "mallctl");
    CULET_OF_MALLOC(text_function, glibc, "gnu_get_libc_version");

    if (culet != NULL)
        return text(culet());
    if (mimalloc != NULL)
        return mimalloc_version(mimalloc());
    if (tcmalloc != NULL)
        return tcmalloc_version(tcmalloc);
    if (jemalloc != NULL)
        return jemalloc_version(jemalloc);
    return glibc != NULL ? text(glibc()) : Qnil;
}

/* Culet.allocator: the allocator that serves this process. Returns a frozen Hash:
 *   name:    "culet", "glibc", "jemalloc", "tcmalloc", "mimalloc", "rpmalloc", "snmalloc" or "unknown"
 *   version: String; nil if the library does not report it
 *   library: absolute path of the file that defines malloc, or nil
 *   active:  true if culet serves the process; false with the name "culet" if it is loaded but passes all calls on to
 *            glibc */
static VALUE culet_allocator(VALUE self)
{
    CULET_OF_MALLOC(number_function, active, "culet_active");
    VALUE result = rb_hash_new();

    culet_hash_set(result, "name", text(culet_malloc_name()));
    culet_hash_set(result, "version", version());
    culet_hash_set(result, "library", text(culet_malloc_path()));
    culet_hash_set(result, "active", active != NULL && active() != 0 ? Qtrue : Qfalse);
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
