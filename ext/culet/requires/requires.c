/*
 * All requires reach the C functions of require, require_relative and load. Bundler, bundled gems, Zeitwerk and
 * Bootsnap define methods above Kernel#require, some of them late, and call what was there before; RubyGems, the first
 * of them, calls gem_original_require. That one and the other two are replaced by C functions that call the original C
 * functions, so that backtraces, arguments, results and exceptions are unchanged.
 *
 * What RubyGems does before and after is part of finding the file. A TracePoint on its Kernel#require alone reports
 * start and end, at no cost for other methods.
 *
 * The event script_compiled reports that a file was found, read and compiled, just before it runs. Such a file without
 * any of the methods was required by C code (rb_require): it is recorded, and its cost counts for the file that
 * required it. A file that an extension requires while it is loaded is first taken for the extension, whose own name is
 * known when its require ends.
 */
#include "requires/requires.h" /* first: ruby.h defines _GNU_SOURCE */

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
 * A require in progress. RubyGems' method starts one without a name (marked), and gets its name from the C function
 * that it calls; a second attempt after activating a gem belongs to the same one. Other requires have their name from
 * the start.
 */
struct frame {
  struct frame *up;
  struct culet_counters start;
  uint32_t id; /* 0: not written yet */
  uint32_t tag_before;
  int marked;
  int named;
  int running;  /* calls of the C function in progress */
  int compiled; /* the file was compiled */
  VALUE result; /* Qtrue, Qfalse, or the class of the exception; Qundef: left otherwise (throw) */
  struct culet_counters before_run; /* when the file was compiled */
};

static __thread struct frame *top;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t last_id;
static uint32_t first_id = 1; /* of this process; a forked process continues its parent's numbers */
static int started;
static int has_syscall_counter;
static double start_seconds;

/* ---- writing lines ---- */

/* The id of the innermost enclosing require that has one; 0: none. */
static uint32_t
id_around(const struct frame *frame)
{
  for (frame = frame->up; frame != NULL; frame = frame->up)
    if (frame->id != 0) return frame->id;
  return 0;
}

/* With the lock held. */
static void
notice_fork(void)
{
  static pid_t process;

  if (process != 0 && process != getpid()) first_id = last_id + 1;
  process = getpid();
}

static void
add_counters(struct culet_buffer *buffer, const struct culet_counters *counters)
{
  culet_buffer_format(buffer, ",\"figures\":[%.6f,%.6f,%llu,%llu,%llu,%llu,%llu,%llu]", counters->seconds, counters->cpu_seconds, (unsigned long long)counters->objects,
                    (unsigned long long)counters->object_bytes, (unsigned long long)counters->mallocs, (unsigned long long)counters->malloc_bytes,
                    (unsigned long long)counters->paths, (unsigned long long)counters->failed_paths);
}

static void
add_string(struct culet_buffer *buffer, const char *key, VALUE string)
{
  culet_buffer_format(buffer, ",\"%s\":", key);
  if (RB_TYPE_P(string, T_STRING))
    culet_buffer_json_string(buffer, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
  else
    culet_buffer_text(buffer, "null");
}

static void
begin_line(struct culet_buffer *buffer, const struct frame *frame, const char *how, VALUE name, int inherited)
{
  culet_buffer_format(buffer, "{\"kind\":\"begin\",\"id\":%u,\"up\":%u,\"at\":%.6f,\"inherited\":%s,\"how\":\"%s\"", frame->id,
                    id_around(frame), frame->start.seconds - start_seconds, inherited ? "true" : "false", how);
  add_string(buffer, "name", name);
  culet_buffer_text(buffer, "}\n");
}

/* The first lines of a process's file: the process, and the requires in progress when it was forked. */
static void
write_process(struct culet_buffer *buffer, const struct frame *innermost)
{
  const struct frame *chain[512];
  int count = 0;

  culet_buffer_format(buffer, "{\"kind\":\"process\",\"version\":1,\"pid\":%d,\"parent\":%d,\"first\":%u,\"calls\":%s,\"retained\":%s", (int)getpid(),
                    (int)getppid(), first_id, has_syscall_counter ? "true" : "false", culet_counters_follow() ? "true" : "false");
  add_string(buffer, "ruby", rb_const_get(rb_cObject, rb_intern("RUBY_DESCRIPTION")));
  add_string(buffer, "program", rb_gv_get("$0"));
  culet_buffer_text(buffer, "}\n");
  for (; innermost != NULL && count < 512; innermost = innermost->up)
    if (innermost->id != 0) chain[count++] = innermost;
  while (count-- > 0) begin_line(buffer, chain[count], "inherited", Qnil, 1);
}

/* Writes and empties the buffer. behind: the requires in progress, for the first lines. */
static void
emit(struct culet_buffer *buffer, const struct frame *behind)
{
  struct culet_buffer first = {NULL, 0, 0, 0};

  pthread_mutex_lock(&lock);
  notice_fork();
  if (culet_requires_file_ready() == 2) write_process(&first, behind);
  if (!first.failed) culet_requires_file_add(first.bytes, first.length);
  if (!buffer->failed) culet_requires_file_add(buffer->bytes, buffer->length);
  pthread_mutex_unlock(&lock);
  culet_buffer_free(&first);
  culet_buffer_free(buffer);
}

/* ---- requires in progress ---- */

static struct frame *
push(int marked, const struct culet_counters *start)
{
  struct frame *frame = calloc(1, sizeof(*frame));

  if (frame == NULL) return NULL;
  frame->up = top;
  frame->start = *start;
  frame->marked = marked;
  frame->result = Qundef;
  top = frame;
  return frame;
}

static void
give_id(struct frame *frame, const char *how, VALUE what)
{
  struct culet_buffer buffer = {NULL, 0, 0, 0};

  pthread_mutex_lock(&lock);
  notice_fork();
  frame->id = ++last_id;
  pthread_mutex_unlock(&lock);
  frame->tag_before = culet_counters_tag(frame->id);
  begin_line(&buffer, frame, how, what, 0);
  emit(&buffer, frame->up);
}

/* Enclosing requires without a name come first: RubyGems required something before it looked for the file. */
static void
give_ids_around(struct frame *frame)
{
  if (frame == NULL || frame->id != 0) return;
  give_ids_around(frame->up);
  give_id(frame, "require", Qnil);
}

static void
name(struct frame *frame, const char *how, VALUE what)
{
  struct culet_buffer buffer = {NULL, 0, 0, 0};

  frame->named = 1;
  if (frame->id == 0) {
    give_ids_around(frame->up);
    give_id(frame, how, what);
    return;
  }
  culet_buffer_format(&buffer, "{\"kind\":\"name\",\"id\":%u", frame->id);
  add_string(&buffer, "name", what);
  culet_buffer_text(&buffer, "}\n");
  emit(&buffer, frame);
}

/* The last entry of $LOADED_FEATURES: what has just been required. */
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

/* The loaded file. A compiled file is known already, unless an extension's C code required it. */
static VALUE
loaded_feature(const struct frame *frame)
{
  VALUE feature = last_feature();

  return frame->compiled && !is_extension(feature) ? Qnil : feature;
}

static void
add_result(struct culet_buffer *buffer, const struct frame *frame)
{
  culet_buffer_text(buffer, ",\"result\":");
  if (frame->result == Qtrue || frame->result == Qfalse)
    culet_buffer_text(buffer, frame->result == Qtrue ? "true" : "false");
  else if (frame->result == Qundef)
    culet_buffer_text(buffer, "\"left\"");
  else
    culet_buffer_json_string(buffer, rb_class2name(frame->result), strlen(rb_class2name(frame->result)));
}

static void
write_end(const struct frame *frame, const struct culet_counters *now)
{
  struct culet_buffer buffer = {NULL, 0, 0, 0};
  struct culet_counters all = culet_counters_since(now, &frame->start);

  culet_buffer_format(&buffer, "{\"kind\":\"end\",\"id\":%u", frame->id);
  add_result(&buffer, frame);
  if (frame->result == Qtrue) add_string(&buffer, "path", loaded_feature(frame));
  add_counters(&buffer, &all);
  culet_buffer_text(&buffer, "}\n");
  emit(&buffer, frame);
}

/* Removes a require and those above it, which a fiber left behind. */
static void
pop(struct frame *frame, const struct culet_counters *now)
{
  int is_last;

  while (top != NULL) {
    struct frame *gone = top;

    if (gone->id != 0) {
      write_end(gone, now);
      culet_counters_tag(gone->tag_before);
    }
    top = gone->up;
    is_last = gone == frame;
    free(gone);
    if (is_last) return;
  }
}

static int
is_on_stack(const struct frame *frame)
{
  for (const struct frame *other = top; other != NULL; other = other->up)
    if (other == frame) return 1;
  return 0;
}

/* ---- RubyGems' method ---- */

static void
on_rubygems(VALUE tracepoint, void *unused)
{
  int begins = rb_tracearg_event_flag(rb_tracearg_from_tracepoint(tracepoint)) == RUBY_EVENT_CALL;
  struct culet_counters now = culet_counters_pause();

  if (begins) {
    push(1, &now);
  } else {
    struct frame *mark = top;
    while (mark != NULL && (!mark->marked || mark->running)) mark = mark->up;
    if (mark != NULL) pop(mark, &now);
  }
  culet_counters_resume();
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

/* A call of one of Ruby's functions. */
struct call {
  const char *how;
  VALUE name;
  VALUE (*function)(const struct call *call);
  VALUE self;
  int argc;
  const VALUE *argv;
  struct frame *frame;
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
  struct culet_counters now = culet_counters_pause();

  if (is_on_stack(call->frame)) {
    call->frame->running--;
    call->frame->result = call->done ? (RTEST(call->result) ? Qtrue : Qfalse) : class_of_error();
    if (!call->frame->marked) pop(call->frame, &now);
  }
  culet_counters_resume();
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

/* What RubyGems' method calls belongs to the require that it started. */
static int
belongs_to_mark(const struct call *call)
{
  return call->function == call_require && top != NULL && top->marked && !top->running;
}

static VALUE
record_call(struct call *call)
{
  struct culet_counters now = culet_counters_pause();

  call->frame = belongs_to_mark(call) ? top : push(0, &now);
  if (call->frame != NULL) {
    call->frame->running++;
    if (!call->frame->named) name(call->frame, call->how, call->name);
  }
  culet_counters_resume();
  if (call->frame == NULL) return call->function(call);
  return rb_ensure(run_call, (VALUE)call, end_call, (VALUE)call);
}

static VALUE
record_require(VALUE self, VALUE feature)
{
  struct call call = {"require", feature, call_require, self, 1, &feature, NULL, 0, Qnil};

  return record_call(&call);
}

static VALUE
record_relative(VALUE self, VALUE feature)
{
  struct call call = {"require_relative", feature, call_relative, self, 1, &feature, NULL, 0, Qnil};

  return record_call(&call);
}

static VALUE
record_load(int argc, const VALUE *argv, VALUE self)
{
  struct call call = {"load", argc > 0 ? argv[0] : Qnil, call_load, self, argc, argv, NULL, 0, Qnil};

  return record_call(&call);
}

/* Under RubyGems Ruby's function is the method gem_original_require, but backtraces show "require": the same here. */
static void
replace_require(void)
{
  VALUE scratch, method;
  VALUE original = culet_symbol("gem_original_require");

  if (!RTEST(rb_funcall(rb_mKernel, rb_intern("private_method_defined?"), 1, original))) {
    rb_define_global_function("require", record_require, 1);
    return;
  }
  scratch = rb_module_new();
  rb_define_method(scratch, "require", record_require, 1);
  method = rb_funcall(scratch, rb_intern("instance_method"), 1, culet_symbol("require"));
  rb_funcall(rb_mKernel, rb_intern("define_method"), 2, original, method);
  rb_funcall(rb_mKernel, rb_intern("private"), 1, original);
  rb_define_singleton_method(rb_mKernel, "require", record_require, 1);
}

/* A method whose C function is not found is left alone. */
static void
replace_others(void)
{
  void *relative = culet_original_function(rb_mKernel, "require_relative");
  void *load = culet_original_function(rb_mKernel, "load");

  if (relative != NULL) {
    memcpy(&original_relative, &relative, sizeof(relative));
    rb_define_global_function("require_relative", record_relative, 1);
  }
  if (load != NULL) {
    memcpy(&original_load, &load, sizeof(load));
    rb_define_global_function("load", record_load, -1);
  }
}

/* ---- compiled files ---- */

static VALUE
write_compiled(VALUE tracepoint)
{
  VALUE code, path;
  struct culet_buffer buffer = {NULL, 0, 0, 0};
  struct frame *frame = top;

  if (!NIL_P(rb_funcall(tracepoint, rb_intern("eval_script"), 0))) return Qnil;
  code = rb_funcall(tracepoint, rb_intern("instruction_sequence"), 0);
  path = rb_funcall(code, rb_intern("path"), 0);
  while (frame != NULL && frame->id == 0) frame = frame->up;
  if (frame != NULL && frame->running && !frame->compiled) {
    struct culet_counters until = culet_counters_since(&frame->before_run, &frame->start);
    frame->compiled = 1;
    culet_buffer_format(&buffer, "{\"kind\":\"compiled\",\"id\":%u", frame->id);
    add_counters(&buffer, &until);
  } else {
    culet_buffer_format(&buffer, "{\"kind\":\"inner\",\"up\":%u", frame != NULL ? frame->id : 0);
  }
  add_string(&buffer, "path", path);
  culet_buffer_text(&buffer, "}\n");
  emit(&buffer, top);
  return Qnil;
}

/* An exception here must not reach the program. */
static void
on_compiled(VALUE tracepoint, void *unused)
{
  struct culet_counters now = culet_counters_pause();
  int failure = 0;

  if (top != NULL) top->before_run = now;
  rb_protect(write_compiled, tracepoint, &failure);
  if (failure) rb_set_errinfo(Qnil);
  culet_counters_resume();
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
write_retained(VALUE unused)
{
  struct culet_buffer buffer = {NULL, 0, 0, 0};

  rb_gc_start();
  culet_retained_write(&buffer, first_id, last_id);
  culet_buffer_format(&buffer, "{\"kind\":\"exit\",\"lost_tags\":%zu}\n", culet_tags_lost());
  emit(&buffer, top);
  return Qnil;
}

/* A forked process without requires writes no file. */
static void
at_end(VALUE unused)
{
  struct culet_counters now;
  struct culet_buffer buffer = {NULL, 0, 0, 0};
  int failure = 0;

  if (!culet_requires_file_begun()) return;
  now = culet_counters_pause();
  culet_buffer_format(&buffer, "{\"kind\":\"last\",\"at\":%.6f}\n", now.seconds - start_seconds);
  emit(&buffer, top);
  rb_protect(write_retained, Qnil, &failure);
  if (failure) rb_set_errinfo(Qnil);
  culet_counters_resume();
}

/*
 * Culet::Requires.start(folder, follow): records from now on into a file in the folder, each forked process into a file
 * of its own. follow: whether to follow objects, to find those that are retained. Once; returns false at further calls.
 */
static VALUE
requires_start(VALUE self, VALUE directory, VALUE follow_objects)
{
  VALUE *verbose = rb_ruby_verbose_ptr();
  VALUE verbose_before = *verbose;
  struct culet_counters now;

  if (started) return Qfalse;
  started = 1;
  culet_requires_file_in(StringValueCStr(directory));
  *verbose = Qnil; /* no warnings about redefined methods */
  replace_require();
  replace_others();
  *verbose = verbose_before;
  watch_rubygems();
  watch_compiled();
  rb_set_end_proc(at_end, Qnil);
  has_syscall_counter = culet_counters_start(RTEST(follow_objects));
  now = culet_counters_pause();
  start_seconds = now.seconds;
  struct culet_buffer buffer = {NULL, 0, 0, 0};
  emit(&buffer, NULL);
  culet_counters_resume();
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
