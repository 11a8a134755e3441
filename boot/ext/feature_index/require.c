/* `require` with the index of the load path.
 *
 * This function replaces Ruby's own C function at the bottom of the chain, below RubyGems, Bundler and others, and
 * calls that function with the file's absolute path, if the index has it, or else with the original name. So everything
 * above still runs, and locks, $LOADED_FEATURES and errors are Ruby's. `load` of a Ruby file by its name in the load
 * path and $LOAD_PATH.resolve_feature_path work alike.
 *
 * The result must be the file that Ruby would find. Ruby first checks whether a feature of that name is loaded
 * (rb_provided); the name is then passed on unchanged, unless Ruby would search the load path for a Ruby file beside a
 * loaded native one. Names that Ruby does not search by load path and extensions (absolute, "./", "~", a dot in the
 * last part) are passed on unchanged. */
#include <ruby.h>
#include <ruby/encoding.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/release.h"
#include "common/values.h"
#include "common/vm_lock.h"
#include "feature_index/load_path.h"
#include "feature_index/plt_hook.h"
#include "feature_index/realpath_cache.h"
#include "feature_index/require.h"
#include "feature_index/resolver.h"
#include "internals/original_function.h"
#include "recorder/recorder.h"

static struct {
    struct culet_resolver *resolver;
    VALUE load_path;          /* $LOAD_PATH */
    VALUE known_load_path;    /* its contents when the resolver got it; hidden */
    int ruby_files_first;     /* whether Ruby prefers x.rb in a later folder to x.so in an earlier one */
    int reports_missing;      /* whether the index may report that no file provides a name */
    int realpath_hooks;       /* hooked PLT entries for realpath */
    int trims;                /* whether to trim after a large part of a program was loaded */
    int loading;              /* whether a feature is being loaded through culet_require */
    unsigned long files;      /* loaded so far */
    unsigned long trimmed_at; /* `files` at the last trim */
    unsigned long found, nowhere, unsure, loaded;
    ID functions[3];                          /* require, require_relative, load */
    VALUE (*load)(int, const VALUE *, VALUE); /* Ruby's own; NULL: not found */
    VALUE (*resolve)(VALUE, VALUE);           /* $LOAD_PATH.resolve_feature_path; NULL: not found */
} state;

static int load_path_is_unchanged(void)
{
    long count = RARRAY_LEN(state.load_path), i;

    if (RARRAY_LEN(state.known_load_path) != count)
        return 0;
    for (i = 0; i < count && RARRAY_AREF(state.load_path, i) == RARRAY_AREF(state.known_load_path, i);)
        i++;
    return i == count;
}

/* Only Strings with an absolute path are known. Other entries depend on the working directory, the home directory or a
 * method; with characters beyond ASCII, unless the file system encoding is UTF-8, on the encoding of the required
 * name. */
static struct culet_load_path_entry entry_of(VALUE entry)
{
    struct culet_load_path_entry result = {NULL, 0};

    if (!RB_TYPE_P(entry, T_STRING) || RSTRING_LEN(entry) == 0 || RSTRING_PTR(entry)[0] != '/')
        return result;
    if (!rb_enc_asciicompat(rb_enc_get(entry)) || memchr(RSTRING_PTR(entry), '\0', (size_t)RSTRING_LEN(entry)) != NULL)
        return result;
    if (rb_enc_str_coderange(entry) != ENC_CODERANGE_7BIT && rb_filesystem_encoding() != rb_utf8_encoding())
        return result;
    result.path = RSTRING_PTR(entry);
    result.length = (size_t)RSTRING_LEN(entry);
    return result;
}

static void update_load_path(void)
{
    long count = RARRAY_LEN(state.load_path), i;
    struct culet_load_path_entry *entries;
    VALUE memory;

    rb_ary_replace(state.known_load_path, state.load_path);
    entries = ALLOCV_N(struct culet_load_path_entry, memory, count + 1);
    for (i = 0; i < count; i++) {
        VALUE entry = RARRAY_AREF(state.load_path, i);

        /* Ruby freezes them too when it reads the load path. */
        if (RB_TYPE_P(entry, T_STRING))
            rb_str_freeze(entry);
        entries[i] = entry_of(entry);
    }
    culet_load_path_set(state.resolver, entries, (size_t)count);
    ALLOCV_END(memory);
}

static void warn_problem(void)
{
    const char *problem = culet_resolver_problem(state.resolver);

    if (problem == NULL)
        return;
    rb_funcall(
        rb_mKernel, rb_intern("warn"), 1,
        rb_sprintf("culet: the load-path index is not saved: %s; set CULET_REQUIRE_CACHE to another folder", problem));
}

static enum culet_answer find(const char *name, size_t length, unsigned kinds, int now, char path[PATH_MAX])
{
    if (!load_path_is_unchanged())
        update_load_path();
    return culet_resolver_find(state.resolver, name, length, kinds, now, path);
}

/* Resolves a name without extension. */
static enum culet_answer find_any(const char *name, size_t length, int now, char path[PATH_MAX])
{
    enum culet_answer answer;

    if (!state.ruby_files_first)
        return find(name, length, CULET_RUBY | CULET_NATIVE, now, path);
    answer = find(name, length, CULET_RUBY, now, path);
    return answer == CULET_NOWHERE ? find(name, length, CULET_NATIVE, now, path) : answer;
}

/* Resolves a name. kinds: by its extension, which starts at `stem`; 0: it has none. */
static enum culet_answer find_named(const char *name, size_t length, size_t stem, unsigned kinds, int now,
                                    char path[PATH_MAX])
{
    enum culet_answer answer = kinds == 0 ? CULET_NOWHERE : find(name, stem, kinds, now, path);

    return answer == CULET_NOWHERE && kinds != CULET_RUBY ? find_any(name, length, now, path) : answer;
}

/* Whether Ruby has loaded a feature with this name and extension. */
static int provided(const char *name, size_t length, const char *extension)
{
    char feature[PATH_MAX];

    if (length + strlen(extension) >= sizeof(feature))
        return 0;
    memcpy(feature, name, length);
    strcpy(feature + length, extension);
    return rb_provided(feature);
}

/* The name to pass on for a name without extension of which a feature is loaded. Beside a loaded native file Ruby
 * searches the load path for a Ruby file at each call. If there is none, the native file's name, with its extension,
 * spares Ruby the search: the feature is loaded, or being loaded by another thread. */
static VALUE resolve_provided(VALUE name, const char *text, size_t length)
{
    char path[PATH_MAX];

    state.loaded++;
    if (culet_resolver_kinds(state.resolver, text, length) == CULET_RUBY || provided(text, length, ".rb"))
        return name;
    if (!provided(text, length, ".so") || find(text, length, CULET_RUBY, 0, path) != CULET_NOWHERE)
        return name;
    return rb_str_cat_cstr(rb_str_dup(name), ".so");
}

/* Whether an extension of this name may be linked into Ruby itself, as prism is: then its Init function exists. */
static int linked_in(const char *name, size_t length)
{
    const char *last = memrchr(name, '/', length), *base = last == NULL ? name : last + 1;
    char function[NAME_MAX + sizeof("Init_")];
    int written = snprintf(function, sizeof(function), "Init_%.*s", (int)(name + length - base), base);

    return written >= (int)sizeof(function) || dlsym(RTLD_DEFAULT, function) != NULL;
}

/* Returns the value for Ruby: the file's path; or the name, if Ruby has to search; or Qundef, if no file provides the
 * name. Separate from the caller, so that nested requires do not each hold the path buffer on the stack. */
static VALUE resolve(VALUE name)
{
    const char *text = StringValueCStr(name), *last = strrchr(text, '/'),
               *dot = strrchr(last == NULL ? text : last, '.');
    size_t length = (size_t)RSTRING_LEN(name), stem = dot == NULL ? length : (size_t)(dot - text);
    int ruby = dot != NULL && strcmp(dot, ".rb") == 0;
    int native = dot != NULL && strcmp(dot, CULET_NATIVE_EXTENSION) == 0;
    unsigned kinds = native ? CULET_NATIVE : ruby ? CULET_RUBY : 0;
    enum culet_answer answer;
    char path[PATH_MAX];

    if (dot != NULL && !ruby && !native) {
        state.unsure++;
        return name;
    }
    if (rb_provided(text)) {
        if (dot == NULL)
            return resolve_provided(name, text, length);
        state.loaded++;
        return name;
    }
    answer = find_named(text, length, stem, kinds, 0, path);
    /* A missing file may have just been written: check again without the cache. */
    if (answer == CULET_NOWHERE)
        answer = find_named(text, length, stem, kinds, 1, path);

    if (answer == CULET_FOUND) {
        state.found++;
        return rb_filesystem_str_new_cstr(path);
    }
    if (answer == CULET_NOWHERE && state.reports_missing && (ruby || !linked_in(text, native ? stem : length))) {
        state.nowhere++;
        return Qundef;
    }
    state.unsure++;
    return name;
}

/* Whether the index can be used for a name at all. */
static int is_plain(VALUE name)
{
    return RB_TYPE_P(name, T_STRING) && rb_enc_asciicompat(rb_enc_get(name)) &&
           culet_resolver_plain(RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
}

/* The parser and compiler leave a tenth of a large program's resident memory free in malloc. It is returned at the end
 * of the outermost `require` that loaded at least TRIM_FILES files and a third (TRIM_SHARE) of all so far: a trim takes
 * milliseconds, and a boot makes a handful. */
#define TRIM_FILES 256
#define TRIM_SHARE 3

struct call {
    VALUE self, feature;
};

static VALUE load_feature(VALUE argument)
{
    const struct call *call = (const struct call *)argument;
    VALUE result = rb_f_require(call->self, call->feature);

    state.files += result == Qtrue;
    return result;
}

static VALUE finish_require(VALUE unused)
{
    unsigned long since = state.files - state.trimmed_at;

    state.loading = 0;
    if (!state.trims || since < TRIM_FILES || since < state.files / TRIM_SHARE)
        return Qnil;
    state.trimmed_at = state.files;
    culet_release_memory();
    return Qnil;
}

static VALUE culet_require(VALUE self, VALUE name)
{
    struct call call = {.self = self, .feature = name};

    if (state.resolver == NULL || !culet_in_main_ractor())
        return rb_f_require(self, name);
    if (is_plain(name)) {
        name = rb_str_new_frozen(name);
        call.feature = resolve(name);
        warn_problem();
        if (call.feature == Qundef)
            rb_loaderror_with_path(name, "cannot load such file -- %" PRIsVALUE, name);
    } else {
        state.unsure++;
    }
    if (state.loading)
        return load_feature((VALUE)&call);
    state.loading = 1;
    return rb_ensure(load_feature, (VALUE)&call, finish_require, Qnil);
}

static int ends_in(VALUE name, const char *extension)
{
    size_t length = (size_t)RSTRING_LEN(name), bytes = strlen(extension);

    return length > bytes && memcmp(RSTRING_PTR(name) + length - bytes, extension, bytes) == 0;
}

/* The path of a Ruby file that is named with its extension; the name itself if Ruby has to search. */
static VALUE ruby_file(VALUE name)
{
    char path[PATH_MAX];

    if (!is_plain(name) || !ends_in(name, ".rb"))
        return name;
    if (find(RSTRING_PTR(name), (size_t)RSTRING_LEN(name) - strlen(".rb"), CULET_RUBY, 0, path) != CULET_FOUND)
        return name;
    state.found++;
    return rb_filesystem_str_new_cstr(path);
}

static VALUE culet_load(int argc, VALUE *argv, VALUE self)
{
    VALUE resolved[2];

    if (state.resolver == NULL || !culet_in_main_ractor() || argc < 1 || argc > 2)
        return state.load(argc, argv, self);
    resolved[0] = ruby_file(argv[0]);
    if (argc == 2)
        resolved[1] = argv[1];
    warn_problem();
    return state.load(argc, resolved, self);
}

/* Ruby's own method looks only at the load path, whatever is loaded. Names with a dot in the last part are left to
 * it. */
static VALUE culet_resolve(VALUE self, VALUE name)
{
    char path[PATH_MAX];
    const char *last;

    if (state.resolver == NULL || self != state.load_path || !culet_in_main_ractor() || !is_plain(name))
        return state.resolve(self, name);
    last = memrchr(RSTRING_PTR(name), '/', (size_t)RSTRING_LEN(name));
    last = last == NULL ? RSTRING_PTR(name) : last;
    if (memchr(last, '.', (size_t)(RSTRING_PTR(name) + RSTRING_LEN(name) - last)) != NULL)
        return state.resolve(self, name);
    if (find_any(RSTRING_PTR(name), (size_t)RSTRING_LEN(name), 0, path) != CULET_FOUND)
        return state.resolve(self, name);
    state.found++;
    return state.resolve(self, rb_filesystem_str_new_cstr(path));
}

/* Whether Ruby is loading this file. From Ruby 3.3 on files are read and compiled in a frame without method that has
 * the file's name. */
static int is_loading(const char *path)
{
    ID function = rb_frame_this_func();
    const char *source;

    if (function == state.functions[0] || function == state.functions[1] || function == state.functions[2])
        return 1;
    if (function != 0)
        return 0;
    source = rb_sourcefile();
    return source != NULL && strcmp(source, path) == 0;
}

/* Called by libruby instead of realpath(3). Answers from the cache only while Ruby loads a file; all other callers,
 * such as File.realpath, get the C library's answer. */
static char *cached_realpath(const char *path, char *resolved)
{
    struct stat status;

    if (resolved == NULL && path != NULL && path[0] == '/' && culet_in_main_ractor() && is_loading(path)) {
        if (culet_realpath_is_file(path, &status))
            return strdup(path);
        if (culet_realpath_is_absent(path)) {
            errno = ENOENT;
            return NULL;
        }
    }
    return realpath(path, resolved);
}

static void hook_realpath(void)
{
    char *(*original)(const char *, char *) = realpath;
    char *(*ours)(const char *, char *) = cached_realpath;
    void *inside;
    VALUE (*require)(VALUE, VALUE) = rb_f_require;

    memcpy(&inside, &require, sizeof(inside));
    state.realpath_hooks = culet_plt_hook(inside, "realpath", (culet_function *)original, (culet_function *)ours);
}

/* Replaces methods only if the C functions behind them are Ruby's own. */
static void replace_resolve(void)
{
    VALUE *verbose = rb_ruby_verbose_ptr(), before = *verbose;
    void *found = rb_respond_to(state.load_path, rb_intern("resolve_feature_path"))
                      ? culet_original_function(state.load_path, "resolve_feature_path")
                      : NULL;

    if (found == NULL)
        return;
    memcpy(&state.resolve, &found, sizeof(found));
    *verbose = Qnil; /* no warning about the redefinition */
    rb_define_singleton_method(state.load_path, "resolve_feature_path", culet_resolve, 1);
    *verbose = before;
}

static void find_load(void)
{
    void *found = culet_original_function(rb_mKernel, "load");

    if (found != NULL)
        memcpy(&state.load, &found, sizeof(found));
}

/* Culet::Require.prepare(file, denies, all, ruby_files_first) -> nil
 *
 * file:             the index file, a String; nil: in memory
 * denies:           whether the index may report that no file provides a name
 * all:              whether to cache real paths, and to trim after loading
 * ruby_files_first: whether Ruby prefers x.rb in a later folder of the load path to x.so in an earlier one */
static VALUE prepare(VALUE self, VALUE file, VALUE reports_missing, VALUE all, VALUE ruby_files_first)
{
    static const char *const functions[] = {"require", "require_relative", "load"};
    size_t i;

    if (state.resolver != NULL)
        return Qnil;
    state.load_path = rb_gv_get("$LOAD_PATH");
    rb_gc_register_mark_object(state.load_path);
    state.known_load_path = rb_ary_new();
    rb_gc_register_mark_object(state.known_load_path);
    state.reports_missing = RTEST(reports_missing);
    state.ruby_files_first = RTEST(ruby_files_first);
    for (i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        state.functions[i] = rb_intern(functions[i]);
    culet_main_ractor_prepare();
    state.resolver = culet_resolver_new(NIL_P(file) ? NULL : StringValueCStr(file));
    if (state.resolver == NULL)
        rb_memerror();
    find_load();
    replace_resolve();
    if (!RTEST(all))
        return Qnil;
    hook_realpath();
    culet_release_find();
    state.trims = culet_release_found()->why_not == NULL && !culet_release_found()->in_ruby_threads;
    return Qnil;
}

/* Culet::Require.figures -> Hash
 *
 * bytes, folders, files: size of the index; shared: whether it was read from its file; asked: folders of the load path
 * that are probed, because they changed; builds: how often this process read folders; found, nowhere, unsure, loaded:
 * results of `require` (path found; no file provides the name; left to Ruby's search; already loaded); real_paths:
 * whether realpath is hooked */
static VALUE stats(VALUE self)
{
    static const struct culet_index_header none;
    const struct culet_resolver *resolver = state.resolver;
    const struct culet_index_header *header;
    VALUE result = rb_hash_new();

    if (resolver == NULL)
        return result;
    header = resolver->index.base == NULL ? &none : resolver->index.header;
    culet_hash_set(result, "bytes", SIZET2NUM(resolver->index.bytes));
    culet_hash_set(result, "folders", UINT2NUM(header->roots));
    culet_hash_set(result, "files", UINT2NUM(header->nodes - header->roots));
    culet_hash_set(result, "shared", header != &none && !resolver->index.in_memory ? Qtrue : Qfalse);
    culet_hash_set(result, "asked", SIZET2NUM(resolver->probed));
    culet_hash_set(result, "builds", UINT2NUM(resolver->builds));
    culet_hash_set(result, "found", ULONG2NUM(state.found));
    culet_hash_set(result, "nowhere", ULONG2NUM(state.nowhere));
    culet_hash_set(result, "unsure", ULONG2NUM(state.unsure));
    culet_hash_set(result, "loaded", ULONG2NUM(state.loaded));
    culet_hash_set(result, "real_paths", state.realpath_hooks > 0 ? Qtrue : Qfalse);
    return result;
}

/* A module named Kernel: Ruby 4.1 labels the frames of a copied method by the module that it was copied from. */
static VALUE functions;

static void define(VALUE module, VALUE name)
{
    if (name == culet_symbol("load"))
        rb_define_method(module, "load", culet_load, -1);
    else
        rb_define_method(module, "require", culet_require, 1);
}

/* Culet::Require.take_over(module, name, original) -> nil
 *
 * Replaces the method `name` of a module itself, whatever is prepended, by our `require` or `load`, as `original` says.
 * Backtraces show that name, as with Ruby's method. */
static VALUE take_over(VALUE self, VALUE module, VALUE name, VALUE original)
{
    VALUE *verbose = rb_ruby_verbose_ptr(), before = *verbose;
    VALUE ours = rb_funcall(functions, rb_intern("instance_method"), 1, original);

    /* the recorder keeps its methods and calls ours */
    if (culet_recorder_serve_by(culet_require))
        return Qnil;
    if (original == culet_symbol("load") && state.load == NULL)
        return Qnil;
    *verbose = Qnil; /* no warning about the redefinition */
    if (name == original)
        define(module, name);
    else
        rb_funcall(module, rb_intern("define_method"), 2, name, ours);
    *verbose = before;
    return Qnil;
}

void culet_init_require(VALUE culet)
{
    VALUE module = rb_define_module_under(culet, "Require");

    functions = rb_module_new();
    rb_gc_register_mark_object(functions);
    rb_set_class_path(functions, rb_cObject, rb_class2name(rb_mKernel));
    define(functions, culet_symbol("require"));
    define(functions, culet_symbol("load"));
    rb_define_singleton_method(module, "prepare", prepare, 4);
    rb_define_singleton_method(module, "take_over", take_over, 3);
    rb_define_singleton_method(module, "figures", stats, 0);
}
