/*
 * Requires are seen where all of them end up: in the C functions of require, require_relative and load. Bundler, bundled
 * gems, Zeitwerk and Bootsnap put methods of their own before Kernel#require, some of them late, and each calls what was
 * there before; RubyGems, which is the first of them, calls gem_original_require. That one, and the other two, are
 * replaced by C functions that call the original C functions: no frame is added to any backtrace, no arguments or results
 * are changed, and what raises, throws or exits goes through.
 *
 * What RubyGems does before and after is part of finding the file. Its Kernel#require is a Ruby method, and a TracePoint
 * on that method alone says when it begins and ends; nothing else is slower for it.
 *
 * When a file has been found, read and compiled, the event script_compiled says so, just before the file runs. A file
 * that comes so without any of the methods was required by C code (rb_require); it is told, and its cost is its
 * requirer's. So is one that an extension requires while it is loaded; it is taken for the extension at first, whose own
 * name comes when its require ends.
 */
#include "requires/requires.h" /* ruby.h defines _GNU_SOURCE, hence first */

#include <pthread.h>
#include <ruby/debug.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/active_malloc.h"
#include "common/original_function.h"
#include "requires/counters.h"
#include "requires/file.h"
#include "requires/retained.h"
#include "requires/tags.h"

/*
 * A require that is under way. RubyGems' method makes one that is not named yet (marked), and what it calls to find and
 * run the file names it; where it tries again after activating a gem, that is the same one. The others name it at once.
 */
struct open {
  struct open *up;
  struct culet_figures start;
  uint32_t id; /* 0: not named yet */
  uint32_t tag_before;
  int marked;
  int named;
  int running;  /* the C function is at work for it */
  int compiled; /* its file has been compiled */
  VALUE result; /* Qtrue, Qfalse, or the class of what was raised; Qundef: it was left otherwise */
  struct culet_figures before_run; /* when the file was compiled */
};

static __thread struct open *top;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t last_id;
static uint32_t first_id = 1; /* of this process; its parent's are below */
static int started;
static int calls_there;
static double start_seconds;

/* ---- lines ---- */

/* What is the nearest one around it that has an id; 0: none. */
static uint32_t
id_around(const struct open *open)
{
  for (open = open->up; open != NULL; open = open->up)
    if (open->id != 0) return open->id;
  return 0;
}

/* With the lock held: in a forked process the ids of its own begin behind those of its parent. */
static void
notice_fork(void)
{
  static pid_t process;

  if (process != 0 && process != getpid()) first_id = last_id + 1;
  process = getpid();
}

static void
add_figures(struct culet_buffer *text, const struct culet_figures *figures)
{
  culet_buffer_format(text, ",\"figures\":[%.6f,%.6f,%llu,%llu,%llu,%llu,%llu,%llu]", figures->seconds, figures->cpu_seconds, (unsigned long long)figures->objects,
                    (unsigned long long)figures->object_bytes, (unsigned long long)figures->mallocs, (unsigned long long)figures->malloc_bytes,
                    (unsigned long long)figures->paths, (unsigned long long)figures->failed_paths);
}

static void
add_string(struct culet_buffer *text, const char *key, VALUE string)
{
  culet_buffer_format(text, ",\"%s\":", key);
  if (RB_TYPE_P(string, T_STRING))
    culet_buffer_json_string(text, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
  else
    culet_buffer_text(text, "null");
}

static void
begin_line(struct culet_buffer *text, const struct open *open, const char *how, VALUE name, int inherited)
{
  culet_buffer_format(text, "{\"kind\":\"begin\",\"id\":%u,\"up\":%u,\"at\":%.6f,\"inherited\":%s,\"how\":\"%s\"", open->id,
                    id_around(open), open->start.seconds - start_seconds, inherited ? "true" : "false", how);
  add_string(text, "name", name);
  culet_buffer_text(text, "}\n");
}

/* The first lines of a process's file: what process, and the requires that were under way when it was forked. */
static void
head(struct culet_buffer *text, const struct open *innermost)
{
  const struct open *chain[512];
  int count = 0;

  culet_buffer_format(text, "{\"kind\":\"process\",\"version\":1,\"pid\":%d,\"parent\":%d,\"first\":%u,\"calls\":%s,\"retained\":%s", (int)getpid(),
                    (int)getppid(), first_id, calls_there ? "true" : "false", culet_figures_follow() ? "true" : "false");
  add_string(text, "ruby", rb_const_get(rb_cObject, rb_intern("RUBY_DESCRIPTION")));
  add_string(text, "program", rb_gv_get("$0"));
  culet_buffer_text(text, "}\n");
  for (; innermost != NULL && count < 512; innermost = innermost->up)
    if (innermost->id != 0) chain[count++] = innermost;
  while (count-- > 0) begin_line(text, chain[count], "inherited", Qnil, 1);
}

/* Everything that is written goes by here; the text is empty then. `behind` is what was under way before. */
static void
emit(struct culet_buffer *text, const struct open *behind)
{
  struct culet_buffer first = {NULL, 0, 0, 0};

  pthread_mutex_lock(&lock);
  notice_fork();
  if (culet_requires_file_ready() == 2) head(&first, behind);
  if (!first.failed) culet_requires_file_add(first.bytes, first.length);
  if (!text->failed) culet_requires_file_add(text->bytes, text->length);
  pthread_mutex_unlock(&lock);
  culet_buffer_free(&first);
  culet_buffer_free(text);
}

/* ---- one require ---- */

static struct open *
push(int marked, const struct culet_figures *start)
{
  struct open *open = calloc(1, sizeof(*open));

  if (open == NULL) return NULL;
  open->up = top;
  open->start = *start;
  open->marked = marked;
  open->result = Qundef;
  top = open;
  return open;
}

static void
give_id(struct open *open, const char *how, VALUE what)
{
  struct culet_buffer text = {NULL, 0, 0, 0};

  pthread_mutex_lock(&lock);
  notice_fork();
  open->id = ++last_id;
  pthread_mutex_unlock(&lock);
  open->tag_before = culet_figures_tag(open->id);
  begin_line(&text, open, how, what, 0);
  emit(&text, open->up);
}

/* Marks around it that have no name yet, because RubyGems requires something before it looks for the file, come first. */
static void
give_ids_around(struct open *open)
{
  if (open == NULL || open->id != 0) return;
  give_ids_around(open->up);
  give_id(open, "require", Qnil);
}

static void
name(struct open *open, const char *how, VALUE what)
{
  struct culet_buffer text = {NULL, 0, 0, 0};

  open->named = 1;
  if (open->id == 0) {
    give_ids_around(open->up);
    give_id(open, how, what);
    return;
  }
  culet_buffer_format(&text, "{\"kind\":\"name\",\"id\":%u", open->id);
  add_string(&text, "name", what);
  culet_buffer_text(&text, "}\n");
  emit(&text, open);
}

/* The last entry of $LOADED_FEATURES, which is where what has just been required was put. */
static VALUE
last_feature(void)
{
  VALUE features = rb_gv_get("$LOADED_FEATURES");

  return RB_TYPE_P(features, T_ARRAY) && RARRAY_LEN(features) > 0 ? RARRAY_AREF(features, RARRAY_LEN(features) - 1) : Qnil;
}

static int
is_extension(VALUE path)
{
  size_t end = sizeof(DLEXT) - 1;

  return RB_TYPE_P(path, T_STRING) && (size_t)RSTRING_LEN(path) > end && memcmp(RSTRING_END(path) - end, DLEXT, end) == 0;
}

/* What was loaded. A file that was compiled is it already, unless it is one that an extension's C code required. */
static VALUE
loaded_feature(const struct open *open)
{
  VALUE feature = last_feature();

  return open->compiled && !is_extension(feature) ? Qnil : feature;
}

static void
add_result(struct culet_buffer *text, const struct open *open)
{
  culet_buffer_text(text, ",\"result\":");
  if (open->result == Qtrue || open->result == Qfalse)
    culet_buffer_text(text, open->result == Qtrue ? "true" : "false");
  else if (open->result == Qundef)
    culet_buffer_text(text, "\"left\"");
  else
    culet_buffer_json_string(text, rb_class2name(open->result), strlen(rb_class2name(open->result)));
}

static void
tell_end(const struct open *open, const struct culet_figures *now)
{
  struct culet_buffer text = {NULL, 0, 0, 0};
  struct culet_figures all = culet_figures_since(now, &open->start);

  culet_buffer_format(&text, "{\"kind\":\"end\",\"id\":%u", open->id);
  add_result(&text, open);
  if (open->result == Qtrue) add_string(&text, "path", loaded_feature(open));
  add_figures(&text, &all);
  culet_buffer_text(&text, "}\n");
  emit(&text, open);
}

/* Takes it off, with those above it that a fiber left behind. */
static void
pop(struct open *open, const struct culet_figures *now)
{
  int last;

  while (top != NULL) {
    struct open *gone = top;

    if (gone->id != 0) {
      tell_end(gone, now);
      culet_figures_tag(gone->tag_before);
    }
    top = gone->up;
    last = gone == open;
    free(gone);
    if (last) return;
  }
}

static int
is_open(const struct open *open)
{
  for (const struct open *other = top; other != NULL; other = other->up)
    if (other == open) return 1;
  return 0;
}

/* ---- RubyGems' method ---- */

static void
on_rubygems(VALUE tracepoint, void *unused)
{
  int begins = rb_tracearg_event_flag(rb_tracearg_from_tracepoint(tracepoint)) == RUBY_EVENT_CALL;
  struct culet_figures now = culet_figures_pause();

  if (begins) {
    push(1, &now);
  } else {
    struct open *mark = top;
    while (mark != NULL && (!mark->marked || mark->running)) mark = mark->up;
    if (mark != NULL) pop(mark, &now);
  }
  culet_figures_resume();
}

static void
watch_rubygems(void)
{
  VALUE method = rb_funcall(rb_mKernel, rb_intern("instance_method"), 1, culet_symbol("require"));
  VALUE tracepoint, options;

  if (NIL_P(rb_funcall(method, rb_intern("source_location"), 0))) return;
  tracepoint = rb_tracepoint_new(0, RUBY_EVENT_CALL | RUBY_EVENT_RETURN, on_rubygems, NULL);
  rb_gc_register_mark_object(tracepoint);
  options = rb_hash_new();
  rb_hash_aset(options, culet_symbol("target"), method);
  rb_funcallv_kw(tracepoint, rb_intern("enable"), 1, &options, RB_PASS_KEYWORDS);
}

/* ---- the three methods ---- */

/* A call of one of Ruby's own functions, with what belongs to it. */
struct call {
  const char *how;
  VALUE name;
  VALUE (*function)(const struct call *call);
  VALUE self;
  int argc;
  const VALUE *argv;
  struct open *open;
  int done;
  VALUE result;
};

static VALUE (*original_require)(VALUE self, VALUE name) = rb_f_require;
static VALUE (*original_relative)(VALUE self, VALUE name);
static VALUE (*original_load)(int argc, const VALUE *argv, VALUE self);

static VALUE
run_call(VALUE data)
{
  struct call *call = (struct call *)data;

  call->result = call->function(call);
  call->done = 1;
  return call->result;
}

static VALUE
class_of_error(void)
{
  VALUE error = rb_errinfo();

  return RB_TYPE_P(error, T_OBJECT) || rb_obj_is_kind_of(error, rb_eException) ? rb_obj_class(error) : Qundef;
}

static VALUE
end_call(VALUE data)
{
  struct call *call = (struct call *)data;
  struct culet_figures now = culet_figures_pause();

  if (is_open(call->open)) {
    call->open->running--;
    call->open->result = call->done ? (RTEST(call->result) ? Qtrue : Qfalse) : class_of_error();
    if (!call->open->marked) pop(call->open, &now);
  }
  culet_figures_resume();
  return Qnil;
}

static VALUE
call_require(const struct call *call)
{
  return original_require(call->self, call->argv[0]);
}

static VALUE
call_relative(const struct call *call)
{
  return original_relative(call->self, call->argv[0]);
}

static VALUE
call_load(const struct call *call)
{
  return original_load(call->argc, call->argv, call->self);
}

/* What RubyGems' method calls belongs to its mark. */
static int
belongs_to_mark(const struct call *call)
{
  return call->function == call_require && top != NULL && top->marked && !top->running;
}

static VALUE
follow(struct call *call)
{
  struct culet_figures now = culet_figures_pause();

  call->open = belongs_to_mark(call) ? top : push(0, &now);
  if (call->open != NULL) {
    call->open->running++;
    if (!call->open->named) name(call->open, call->how, call->name);
  }
  culet_figures_resume();
  if (call->open == NULL) return call->function(call);
  return rb_ensure(run_call, (VALUE)call, end_call, (VALUE)call);
}

static VALUE
follow_require(VALUE self, VALUE feature)
{
  struct call call = {"require", feature, call_require, self, 1, &feature, NULL, 0, Qnil};

  return follow(&call);
}

static VALUE
follow_relative(VALUE self, VALUE feature)
{
  struct call call = {"require_relative", feature, call_relative, self, 1, &feature, NULL, 0, Qnil};

  return follow(&call);
}

static VALUE
follow_load(int argc, const VALUE *argv, VALUE self)
{
  struct call call = {"load", argc > 0 ? argv[0] : Qnil, call_load, self, argc, argv, NULL, 0, Qnil};

  return follow(&call);
}

/* Under RubyGems the C function bears the name gem_original_require, but is require in backtraces: so does this one. */
static void
replace_require(void)
{
  VALUE scratch, method;
  VALUE original = culet_symbol("gem_original_require");

  if (!RTEST(rb_funcall(rb_mKernel, rb_intern("private_method_defined?"), 1, original))) {
    rb_define_global_function("require", follow_require, 1);
    return;
  }
  scratch = rb_module_new();
  rb_define_method(scratch, "require", follow_require, 1);
  method = rb_funcall(scratch, rb_intern("instance_method"), 1, culet_symbol("require"));
  rb_funcall(rb_mKernel, rb_intern("define_method"), 2, original, method);
  rb_funcall(rb_mKernel, rb_intern("private"), 1, original);
  rb_define_singleton_method(rb_mKernel, "require", follow_require, 1);
}

/* The functions that Ruby does not hand out are looked for; a method whose function is not found stays as it is. */
static void
replace_others(void)
{
  void *relative = culet_original_function(rb_mKernel, "require_relative");
  void *load = culet_original_function(rb_mKernel, "load");

  if (relative != NULL) {
    memcpy(&original_relative, &relative, sizeof(relative));
    rb_define_global_function("require_relative", follow_relative, 1);
  }
  if (load != NULL) {
    memcpy(&original_load, &load, sizeof(load));
    rb_define_global_function("load", follow_load, -1);
  }
}

/* ---- compiled files ---- */

static VALUE
tell_compiled(VALUE tracepoint)
{
  VALUE code, path;
  struct culet_buffer text = {NULL, 0, 0, 0};
  struct open *open = top;

  if (!NIL_P(rb_funcall(tracepoint, rb_intern("eval_script"), 0))) return Qnil;
  code = rb_funcall(tracepoint, rb_intern("instruction_sequence"), 0);
  path = rb_funcall(code, rb_intern("path"), 0);
  while (open != NULL && open->id == 0) open = open->up;
  if (open != NULL && open->running && !open->compiled) {
    struct culet_figures until = culet_figures_since(&open->before_run, &open->start);
    open->compiled = 1;
    culet_buffer_format(&text, "{\"kind\":\"compiled\",\"id\":%u", open->id);
    add_figures(&text, &until);
  } else {
    culet_buffer_format(&text, "{\"kind\":\"inner\",\"up\":%u", open != NULL ? open->id : 0);
  }
  add_string(&text, "path", path);
  culet_buffer_text(&text, "}\n");
  emit(&text, top);
  return Qnil;
}

/* A failure to tell must not become one of the program's. */
static void
on_compiled(VALUE tracepoint, void *unused)
{
  struct culet_figures now = culet_figures_pause();
  int failure = 0;

  if (top != NULL) top->before_run = now;
  rb_protect(tell_compiled, tracepoint, &failure);
  if (failure) rb_set_errinfo(Qnil);
  culet_figures_resume();
}

static void
watch_compiled(void)
{
  VALUE tracepoint = rb_tracepoint_new(0, RUBY_EVENT_SCRIPT_COMPILED, on_compiled, NULL);

  rb_gc_register_mark_object(tracepoint);
  rb_tracepoint_enable(tracepoint);
}

/* ---- the end ---- */

static VALUE
tell_held(VALUE unused)
{
  struct culet_buffer text = {NULL, 0, 0, 0};

  rb_gc_start();
  culet_held_tell(&text, first_id, last_id);
  culet_buffer_format(&text, "{\"kind\":\"exit\",\"lost_tags\":%zu}\n", culet_tags_lost());
  emit(&text, top);
  return Qnil;
}

/* A forked process that required nothing has nothing to tell. */
static void
at_end(VALUE unused)
{
  struct culet_figures now;
  struct culet_buffer text = {NULL, 0, 0, 0};
  int failure = 0;

  if (!culet_requires_file_begun()) return;
  now = culet_figures_pause();
  culet_buffer_format(&text, "{\"kind\":\"last\",\"at\":%.6f}\n", now.seconds - start_seconds);
  emit(&text, top);
  rb_protect(tell_held, Qnil, &failure);
  if (failure) rb_set_errinfo(Qnil);
  culet_figures_resume();
}

/*
 * Culet::Requires.start(folder, follow): records from now on, into a file in this folder, and each process that is forked
 * into one of its own. follow: whether the objects are followed too, so that it is known which of them stay. Once only.
 */
static VALUE
requires_start(VALUE self, VALUE directory, VALUE follow_objects)
{
  VALUE *verbose = rb_ruby_verbose_ptr();
  VALUE verbose_before = *verbose;
  struct culet_figures now;

  if (started) return Qfalse;
  started = 1;
  culet_requires_file_in(StringValueCStr(directory));
  *verbose = Qnil; /* that methods are replaced is meant so */
  replace_require();
  replace_others();
  *verbose = verbose_before;
  watch_rubygems();
  watch_compiled();
  rb_set_end_proc(at_end, Qnil);
  calls_there = culet_figures_start(RTEST(follow_objects));
  now = culet_figures_pause();
  start_seconds = now.seconds;
  struct culet_buffer text = {NULL, 0, 0, 0};
  emit(&text, NULL);
  culet_figures_resume();
  return Qtrue;
}

int
culet_requires_serve_by(VALUE (*require)(VALUE self, VALUE feature))
{
  if (started) original_require = require;
  return started;
}

void
culet_init_requires(VALUE culet)
{
  VALUE requires = rb_define_module_under(culet, "Requires");

  rb_define_singleton_method(requires, "start", requires_start, 2);
}
