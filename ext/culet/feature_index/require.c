/*
 * feature_index/require.c - `require` that asks the index of the load path first.
 *
 * It takes the place of Ruby's own C function at the very bottom, below RubyGems, Bundler and whoever else has put
 * himself in the chain, and hands on to that function: the file's absolute path where the index knows it, else the name
 * as it came. So all that happens on the way down still happens, and what Ruby does with a file is Ruby's: locks against
 * two threads, $LOADED_FEATURES, errors. `load` of a Ruby file by its name in the load path, and
 * $LOAD_PATH.resolve_feature_path, are served likewise.
 *
 * What has to be the same is which file it is. Ruby looks first whether a feature of that name is loaded already, from
 * wherever: rb_provided tells, and then the name goes down as it came, except where Ruby would now search the load path
 * for a Ruby file beside a loaded native one. Names that are searched otherwise than by the load path and the two
 * extensions (absolute, "./", "~", a dot in the last part) go down as they came, too.
 */
#include <ruby.h> /* defines _GNU_SOURCE, hence first */
#include <ruby/encoding.h>

#ifdef HAVE_RB_EXT_RACTOR_SAFE
#include <ruby/ractor.h>
#endif

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/active_malloc.h"
#include "common/original_function.h"
#include "common/release.h"
#include "feature_index/plt_hook.h"
#include "feature_index/realpath_cache.h"
#include "feature_index/require.h"
#include "feature_index/resolver.h"
#include "requires/requires.h"

#if defined(HAVE_RB_F_REQUIRE) && defined(HAVE_RB_PROVIDED) && defined(HAVE_RB_LOADERROR_WITH_PATH)
#define CAN_REQUIRE 1
#endif

#ifdef CAN_REQUIRE

static struct {
  struct culet_resolver *resolver;
  VALUE load_path; /* $LOAD_PATH */
  VALUE known_load_path;      /* what it held when the finder was told; hidden */
  char dlext[16];
  int reports_missing;      /* whether the index may tell that nothing provides a name */
  int realpath_hooks;  /* slots of Ruby's that lead here */
  int trims;  /* whether free memory goes back after a large part of a program has been loaded */
  int loading;     /* whether a feature is being loaded by way of culet_require */
  unsigned long files;   /* loaded so far, */
  unsigned long trimmed_at; /* and when memory was given back last */
  unsigned long found, nowhere, unsure, loaded;
  ID functions[3]; /* those that load features */
  VALUE (*load)(int, const VALUE *, VALUE); /* Ruby's own, and */
  VALUE (*resolve)(VALUE, VALUE);           /* $LOAD_PATH.resolve_feature_path; NULL where they are not known */
#ifdef HAVE_RB_EXT_RACTOR_SAFE
  rb_ractor_local_key_t main_ractor;
#endif
} state;

static int
load_path_is_unchanged(void)
{
  long count = RARRAY_LEN(state.load_path), i;

  if (RARRAY_LEN(state.known_load_path) != count) return 0;
  for (i = 0; i < count && RARRAY_AREF(state.load_path, i) == RARRAY_AREF(state.known_load_path, i);) i++;
  return i == count;
}

/*
 * An entry that Ruby reads as it stands: an absolute path of a String. Any other depends on the working directory, the
 * home or a method; or, with characters beyond ASCII where the file system's encoding is not UTF-8, on the encoding of the
 * name that is asked for.
 */
static struct culet_load_path_entry
entry_of(VALUE entry)
{
  struct culet_load_path_entry result = {NULL, 0};

  if (!RB_TYPE_P(entry, T_STRING) || RSTRING_LEN(entry) == 0 || RSTRING_PTR(entry)[0] != '/') return result;
  if (!rb_enc_asciicompat(rb_enc_get(entry)) || memchr(RSTRING_PTR(entry), '\0', (size_t)RSTRING_LEN(entry)) != NULL) return result;
  if (rb_enc_str_coderange(entry) != ENC_CODERANGE_7BIT && rb_filesystem_encoding() != rb_utf8_encoding()) return result;
  result.path = RSTRING_PTR(entry);
  result.length = (size_t)RSTRING_LEN(entry);
  return result;
}

static void
update_load_path(void)
{
  long count = RARRAY_LEN(state.load_path), i;
  struct culet_load_path_entry *entries;
  VALUE memory;

  rb_ary_replace(state.known_load_path, state.load_path);
  entries = ALLOCV_N(struct culet_load_path_entry, memory, count + 1);
  for (i = 0; i < count; i++) {
    VALUE entry = RARRAY_AREF(state.load_path, i);

    /* As Ruby does when it first reads the load path: so none is changed in place. */
    if (RB_TYPE_P(entry, T_STRING)) rb_str_freeze(entry);
    entries[i] = entry_of(entry);
  }
  culet_resolver_set_load_path(state.resolver, entries, (size_t)count);
  ALLOCV_END(memory);
}

static void
warn_problem(void)
{
  const char *problem = culet_resolver_problem(state.resolver);

  if (problem == NULL) return;
  rb_funcall(rb_mKernel, rb_intern("warn"), 1,
             rb_sprintf("culet: the index of the load path is not kept: %s; CULET_REQUIRE_CACHE names another folder", problem));
}

static enum culet_answer
find(const char *name, size_t length, unsigned kinds, int now, char path[PATH_MAX])
{
  if (!load_path_is_unchanged()) update_load_path();
  return culet_resolver_find(state.resolver, name, length, kinds, now, path);
}

/* What a name without extension stands for. */
static enum culet_answer
find_any(const char *name, size_t length, int now, char path[PATH_MAX])
{
#ifdef CULET_RUBY_FILES_FIRST
  enum culet_answer answer = find(name, length, CULET_RUBY, now, path);

  return answer == CULET_NOWHERE ? find(name, length, CULET_NATIVE, now, path) : answer;
#else
  return find(name, length, CULET_RUBY | CULET_NATIVE, now, path);
#endif
}

/* What a name stands for; `kinds` is what its extension says, which begins at `stem`: 0 where it has none. */
static enum culet_answer
find_named(const char *name, size_t length, size_t stem, unsigned kinds, int now, char path[PATH_MAX])
{
  enum culet_answer answer = kinds == 0 ? CULET_NOWHERE : find(name, stem, kinds, now, path);

  return answer == CULET_NOWHERE && kinds != CULET_RUBY ? find_any(name, length, now, path) : answer;
}

/* Whether Ruby has a feature of that name with that extension. */
static int
provided(const char *name, size_t length, const char *extension)
{
  char feature[PATH_MAX];

  if (length + strlen(extension) >= sizeof(feature)) return 0;
  memcpy(feature, name, length);
  strcpy(feature + length, extension);
  return rb_provided(feature);
}

/*
 * What to give Ruby instead of a name without extension, of which something is loaded. A Ruby file ends the matter; but
 * beside a native file alone Ruby searches the load path for a Ruby file each time, and where there is none, what is
 * loaded is the feature. With its extension Ruby takes it for loaded, or waits for the thread that is loading it, without
 * a search.
 */
static VALUE
resolve_provided(VALUE name, const char *text, size_t length)
{
  char path[PATH_MAX];

  state.loaded++;
  if (culet_resolver_kinds(state.resolver, text, length) == CULET_RUBY || provided(text, length, ".rb")) return name;
  if (!provided(text, length, ".so") || find(text, length, CULET_RUBY, 0, path) != CULET_NOWHERE) return name;
  return rb_str_cat_cstr(rb_str_dup(name), ".so");
}

/*
 * Whether an extension of that name may be linked into Ruby itself, as prism is: no folder has it, and yet Ruby would find
 * it. Its function is among the program's then.
 */
static int
linked_in(const char *name, size_t length)
{
  const char *last = memrchr(name, '/', length), *base = last == NULL ? name : last + 1;
  char function[NAME_MAX + sizeof("Init_")];
  int written = snprintf(function, sizeof(function), "Init_%.*s", (int)(name + length - base), base);

  return written >= (int)sizeof(function) || dlsym(RTLD_DEFAULT, function) != NULL;
}

/*
 * What to give Ruby instead of a name: the file's path, or the name itself where Ruby has to search. Qundef: nothing
 * provides it. (A function of its own, because its buffer must not lie on the stack while the file is loaded: those of
 * nested calls would add up.)
 */
static VALUE
resolve(VALUE name)
{
  const char *text = StringValueCStr(name), *last = strrchr(text, '/'), *dot = strrchr(last == NULL ? text : last, '.');
  size_t length = (size_t)RSTRING_LEN(name), stem = dot == NULL ? length : (size_t)(dot - text);
  int ruby = dot != NULL && strcmp(dot, ".rb") == 0;
  int native = dot != NULL && (strcmp(dot, ".so") == 0 || strcmp(dot, state.dlext) == 0);
  unsigned kinds = native ? CULET_NATIVE : ruby ? CULET_RUBY : 0;
  enum culet_answer answer;
  char path[PATH_MAX];

  if (dot != NULL && !ruby && !native) {
    state.unsure++;
    return name;
  }
  if (rb_provided(text)) {
    if (dot == NULL) return resolve_provided(name, text, length);
    state.loaded++;
    return name;
  }
  answer = find_named(text, length, stem, kinds, 0, path);
  /* A file may just have been written: then somebody is likely to load it. */
  if (answer == CULET_NOWHERE) answer = find_named(text, length, stem, kinds, 1, path);

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

/* Whether the index may be asked for a name at all. */
static int
is_plain(VALUE name)
{
  return RB_TYPE_P(name, T_STRING) && rb_enc_asciicompat(rb_enc_get(name)) && culet_resolver_plain(RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
}

static int
in_main_ractor(void)
{
#ifdef HAVE_RB_EXT_RACTOR_SAFE
  VALUE value;

  return rb_ractor_local_storage_value_lookup(state.main_ractor, &value);
#else
  return 1;
#endif
}

/*
 * Parsing and compiling leaves a tenth of a large program's resident memory free in malloc's hands. It goes back when the
 * outermost `require` ends, if it has loaded so many files, and a third of all so far: a trim takes some milliseconds, and
 * the whole boot makes a handful.
 */
#define TRIM_FILES 256
#define TRIM_SHARE 3

struct call {
  VALUE self, feature;
};

static VALUE
load_feature(VALUE argument)
{
  const struct call *call = (const struct call *)argument;
  VALUE result = rb_f_require(call->self, call->feature);

  state.files += result == Qtrue;
  return result;
}

static VALUE
finish_require(VALUE unused)
{
  unsigned long since = state.files - state.trimmed_at;

  state.loading = 0;
  if (!state.trims || since < TRIM_FILES || since < state.files / TRIM_SHARE) return Qnil;
  state.trimmed_at = state.files;
  culet_release_memory();
  return Qnil;
}

static VALUE
culet_require(VALUE self, VALUE name)
{
  struct call call = {.self = self, .feature = name};

  if (state.resolver == NULL || !in_main_ractor()) return rb_f_require(self, name);
  if (is_plain(name)) {
    name = rb_str_new_frozen(name);
    call.feature = resolve(name);
    warn_problem();
    if (call.feature == Qundef) rb_loaderror_with_path(name, "cannot load such file -- %" PRIsVALUE, name);
  } else {
    state.unsure++;
  }
  if (state.loading) return load_feature((VALUE)&call);
  state.loading = 1;
  return rb_ensure(load_feature, (VALUE)&call, finish_require, Qnil);
}

static int
ends_in(VALUE name, const char *extension)
{
  size_t length = (size_t)RSTRING_LEN(name), bytes = strlen(extension);

  return length > bytes && memcmp(RSTRING_PTR(name) + length - bytes, extension, bytes) == 0;
}

/* The path of a Ruby file that a load path has by this name, extension and all; the name itself where Ruby has to search. */
static VALUE
ruby_file(VALUE name)
{
  char path[PATH_MAX];

  if (!is_plain(name) || !ends_in(name, ".rb")) return name;
  if (find(RSTRING_PTR(name), (size_t)RSTRING_LEN(name) - strlen(".rb"), CULET_RUBY, 0, path) != CULET_FOUND) return name;
  state.found++;
  return rb_filesystem_str_new_cstr(path);
}

static VALUE
culet_load(int argc, VALUE *argv, VALUE self)
{
  VALUE resolved[2];

  if (state.resolver == NULL || !in_main_ractor() || argc < 1 || argc > 2) return state.load(argc, argv, self);
  resolved[0] = ruby_file(argv[0]);
  if (argc == 2) resolved[1] = argv[1];
  warn_problem();
  return state.load(argc, resolved, self);
}

/*
 * Ruby's own looks at nothing but the load path, whatever is loaded. A name with a dot in its last part, or with an
 * extension, is left to it.
 */
static VALUE
culet_resolve(VALUE self, VALUE name)
{
  char path[PATH_MAX];
  const char *last;

  if (state.resolver == NULL || self != state.load_path || !in_main_ractor() || !is_plain(name)) return state.resolve(self, name);
  last = memrchr(RSTRING_PTR(name), '/', (size_t)RSTRING_LEN(name));
  last = last == NULL ? RSTRING_PTR(name) : last;
  if (memchr(last, '.', (size_t)(RSTRING_PTR(name) + RSTRING_LEN(name) - last)) != NULL) return state.resolve(self, name);
  if (find_any(RSTRING_PTR(name), (size_t)RSTRING_LEN(name), 0, path) != CULET_FOUND) return state.resolve(self, name);
  state.found++;
  return state.resolve(self, rb_filesystem_str_new_cstr(path));
}

/*
 * Whether Ruby is loading a file. From Ruby 3.3 on a file is read and compiled in a frame of its own, which belongs to no
 * method and bears the file's name: that of the file whose real path is asked for.
 */
static int
is_loading(const char *path)
{
  ID function = rb_frame_this_func();
  const char *source;

  if (function == state.functions[0] || function == state.functions[1] || function == state.functions[2]) return 1;
  if (function != 0) return 0;
  source = rb_sourcefile();
  return source != NULL && strcmp(source, path) == 0;
}

/*
 * What Ruby's loading calls instead of realpath(3). Whoever else asks Ruby for a real path gets the C library's answer,
 * which is that of this very moment.
 */
static char *
cached_realpath(const char *path, char *resolved)
{
  struct stat status;

  if (resolved == NULL && path != NULL && path[0] == '/' && in_main_ractor() && is_loading(path)) {
    if (culet_realpath_is_file(path, &status)) return strdup(path);
    if (culet_realpath_is_absent(path)) {
      errno = ENOENT;
      return NULL;
    }
  }
  return realpath(path, resolved);
}

static void
hook_realpath(void)
{
  char *(*original)(const char *, char *) = realpath;
  char *(*ours)(const char *, char *) = cached_realpath;
  void *inside;
  VALUE (*require)(VALUE, VALUE) = rb_f_require;

  memcpy(&inside, &require, sizeof(inside));
  state.realpath_hooks = culet_plt_hook(inside, "realpath", (culet_function *)original, (culet_function *)ours);
}

/* Ruby's own functions behind these methods; where somebody else's stand there, or they are not to be found, they stay. */
static void
replace_resolve(void)
{
  VALUE *verbose = rb_ruby_verbose_ptr(), before = *verbose;
  void *found = rb_respond_to(state.load_path, rb_intern("resolve_feature_path")) ? culet_original_function(state.load_path, "resolve_feature_path") : NULL;

  if (found == NULL) return;
  memcpy(&state.resolve, &found, sizeof(found));
  *verbose = Qnil; /* or a redefinition is warned of */
  rb_define_singleton_method(state.load_path, "resolve_feature_path", culet_resolve, 1);
  *verbose = before;
}

static void
find_load(void)
{
  void *found = culet_original_function(rb_mKernel, "load");

  if (found != NULL) memcpy(&state.load, &found, sizeof(found));
}

/*
 * Culet::Require.prepare(file, denies, all) -> nil
 *
 * file:   where the index is kept, a String, or nil: in memory
 * denies: whether the index may tell that nothing provides a name
 * all:    whether Ruby's loading is to take real paths from here, too, and what it leaves free is to go back
 */
static VALUE
prepare(VALUE self, VALUE file, VALUE reports_missing, VALUE all)
{
  static const char *const functions[] = {"require", "require_relative", "load"};
  size_t i;

  if (state.resolver != NULL) return Qnil;
  state.load_path = rb_gv_get("$LOAD_PATH");
  rb_gc_register_mark_object(state.load_path);
  state.known_load_path = rb_ary_new();
  rb_gc_register_mark_object(state.known_load_path);
  strncpy(state.dlext, DLEXT, sizeof(state.dlext) - 1);
  state.reports_missing = RTEST(reports_missing);
  for (i = 0; i < sizeof(functions) / sizeof(*functions); i++) state.functions[i] = rb_intern(functions[i]);
#ifdef HAVE_RB_EXT_RACTOR_SAFE
  state.main_ractor = rb_ractor_local_storage_value_newkey();
  rb_ractor_local_storage_value_set(state.main_ractor, Qtrue);
#endif
  state.resolver = culet_resolver_new(NIL_P(file) ? NULL : StringValueCStr(file), state.dlext);
  if (state.resolver == NULL) rb_memerror();
  find_load();
  replace_resolve();
  if (!RTEST(all)) return Qnil;
  hook_realpath();
  state.trims = culet_release_found()->why_not == NULL && !culet_release_found()->in_ruby_threads;
  return Qnil;
}

/*
 * Culet::Require.figures -> Hash
 *
 * bytes, folders, files: of the index; shared: whether it was read from its file; asked: how many folders of this load
 * path are asked because the index is not sure of them; builds: how often this process read folders; found, nowhere,
 * unsure, loaded: what came of the calls of `require` (a path from the index or from a folder that was asked; that nothing
 * provides it; left to Ruby's search; already loaded); real_paths: whether Ruby's loading takes real paths from here
 */
static VALUE
stats(VALUE self)
{
  struct culet_resolver_stats answer;
  VALUE result = rb_hash_new();

  if (state.resolver == NULL) return result;
  culet_resolver_read_stats(state.resolver, &answer);
  rb_hash_aset(result, culet_symbol("bytes"), SIZET2NUM(answer.bytes));
  rb_hash_aset(result, culet_symbol("folders"), UINT2NUM(answer.folders));
  rb_hash_aset(result, culet_symbol("files"), UINT2NUM(answer.files));
  rb_hash_aset(result, culet_symbol("shared"), answer.shared ? Qtrue : Qfalse);
  rb_hash_aset(result, culet_symbol("asked"), UINT2NUM(answer.probed));
  rb_hash_aset(result, culet_symbol("builds"), UINT2NUM(answer.builds));
  rb_hash_aset(result, culet_symbol("found"), ULONG2NUM(state.found));
  rb_hash_aset(result, culet_symbol("nowhere"), ULONG2NUM(state.nowhere));
  rb_hash_aset(result, culet_symbol("unsure"), ULONG2NUM(state.unsure));
  rb_hash_aset(result, culet_symbol("loaded"), ULONG2NUM(state.loaded));
  rb_hash_aset(result, culet_symbol("real_paths"), state.realpath_hooks > 0 ? Qtrue : Qfalse);
  return result;
}

/*
 * Culet::Require.take_over(module, name, original) -> nil
 *
 * Puts our `require` or `load`, whichever `original` names, in the place of a method of that module itself, whatever has
 * been prepended to it. The method bears that name in backtraces, as Ruby's does.
 */
static VALUE
take_over(VALUE self, VALUE module, VALUE name, VALUE original)
{
  VALUE *verbose = rb_ruby_verbose_ptr(), before = *verbose;
  VALUE ours = rb_funcall(rb_const_get(self, rb_intern("Original")), rb_intern("instance_method"), 1, original);

  if (culet_requires_serve_by(culet_require)) return Qnil; /* the methods are the recorder's, and stay so */
  if (original == culet_symbol("load") && state.load == NULL) return Qnil;
  *verbose = Qnil; /* or a redefinition is warned of */
  rb_funcall(module, rb_intern("define_method"), 2, name, ours);
  *verbose = before;
  return Qnil;
}
#endif

void
culet_init_require(VALUE culet)
{
#ifdef CAN_REQUIRE
  VALUE module = rb_define_module_under(culet, "Require");
  VALUE original = rb_define_module_under(module, "Original");

  rb_define_method(original, "require", culet_require, 1);
  rb_define_method(original, "load", culet_load, -1);
  rb_define_singleton_method(module, "prepare", prepare, 3);
  rb_define_singleton_method(module, "take_over", take_over, 3);
  rb_define_singleton_method(module, "figures", stats, 0);
#endif
}
