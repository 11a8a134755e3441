#include "recorder/frames.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder/file.h"

struct culet_recording culet_recording = {.first_id = 1};
__thread struct frame *culet_frames_top;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for the numbers and the file */

/* ---- writing lines ---- */

/* The id of the innermost enclosing require that has one; 0: none. */
static uint32_t id_around(const struct frame *frame)
{
    for (frame = frame->up; frame != NULL; frame = frame->up)
        if (frame->id != 0)
            return frame->id;
    return 0;
}

/* With the lock held. */
static void notice_fork(void)
{
    static pid_t process;

    if (process != 0 && process != getpid())
        culet_recording.first_id = culet_recording.last_id + 1;
    process = getpid();
}

void culet_frames_add_counters(struct culet_buffer *buffer, const struct culet_counters *counters)
{
    culet_buffer_format(buffer, ",\"figures\":[%.6f,%.6f,%llu,%llu,%llu,%llu,%llu,%llu]", counters->seconds,
                        counters->cpu_seconds, (unsigned long long)counters->objects,
                        (unsigned long long)counters->object_bytes, (unsigned long long)counters->mallocs,
                        (unsigned long long)counters->malloc_bytes, (unsigned long long)counters->paths,
                        (unsigned long long)counters->failed_paths);
}

void culet_frames_add_string(struct culet_buffer *buffer, const char *key, VALUE string)
{
    culet_buffer_format(buffer, ",\"%s\":", key);
    if (RB_TYPE_P(string, T_STRING))
        culet_buffer_json_string(buffer, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
    else
        culet_buffer_text(buffer, "null");
}

static void begin_line(struct culet_buffer *buffer, const struct frame *frame, const char *how, VALUE name,
                       int inherited)
{
    culet_buffer_format(buffer, "{\"kind\":\"begin\",\"id\":%u,\"up\":%u,\"at\":%.6f,\"inherited\":%s,\"how\":\"%s\"",
                        frame->id, id_around(frame), frame->start.seconds - culet_recording.start_seconds,
                        inherited ? "true" : "false", how);
    culet_frames_add_string(buffer, "name", name);
    culet_buffer_text(buffer, "}\n");
}

/* The first lines of a process's file: the process, and the requires in progress when it was forked. */
static void write_process(struct culet_buffer *buffer, const struct frame *innermost)
{
    const struct frame *chain[512];
    int count = 0;

    culet_buffer_format(
        buffer,
        "{\"kind\":\"process\",\"version\":1,\"pid\":%d,\"parent\":%d,\"first\":%u,\"calls\":%s,\"retained\":%s",
        (int)getpid(), (int)getppid(), culet_recording.first_id, culet_recording.has_syscall_counter ? "true" : "false",
        culet_counters_follow() ? "true" : "false");
    culet_frames_add_string(buffer, "ruby", rb_const_get(rb_cObject, rb_intern("RUBY_DESCRIPTION")));
    culet_frames_add_string(buffer, "program", rb_gv_get("$0"));
    culet_buffer_text(buffer, "}\n");
    for (; innermost != NULL && count < 512; innermost = innermost->up)
        if (innermost->id != 0)
            chain[count++] = innermost;
    while (count-- > 0)
        begin_line(buffer, chain[count], "inherited", Qnil, 1);
}

void culet_frames_write(struct culet_buffer *buffer, const struct frame *outer)
{
    struct culet_buffer first = {NULL, 0, 0, 0};

    pthread_mutex_lock(&lock);
    notice_fork();
    if (culet_recorder_file_ready() == 2)
        write_process(&first, outer);
    if (!first.failed)
        culet_recorder_file_add(first.bytes, first.length);
    if (!buffer->failed)
        culet_recorder_file_add(buffer->bytes, buffer->length);
    pthread_mutex_unlock(&lock);
    culet_buffer_free(&first);
    culet_buffer_free(buffer);
}

/* ---- requires in progress ---- */

struct frame *culet_frames_push(int marked, const struct culet_counters *start)
{
    struct frame *frame = calloc(1, sizeof(*frame));

    if (frame == NULL)
        return NULL;
    frame->up = culet_frames_top;
    frame->start = *start;
    frame->marked = marked;
    frame->result = Qundef;
    culet_frames_top = frame;
    return frame;
}

static void give_id(struct frame *frame, const char *how, VALUE what)
{
    struct culet_buffer buffer = {NULL, 0, 0, 0};

    pthread_mutex_lock(&lock);
    notice_fork();
    frame->id = ++culet_recording.last_id;
    pthread_mutex_unlock(&lock);
    frame->tag_before = culet_counters_tag(frame->id);
    begin_line(&buffer, frame, how, what, 0);
    culet_frames_write(&buffer, frame->up);
}

/* Enclosing requires without a name come first: RubyGems required something before it looked for the file. */
static void give_ids_around(struct frame *frame)
{
    if (frame == NULL || frame->id != 0)
        return;
    give_ids_around(frame->up);
    give_id(frame, "require", Qnil);
}

void culet_frames_name(struct frame *frame, const char *how, VALUE what)
{
    struct culet_buffer buffer = {NULL, 0, 0, 0};

    frame->named = 1;
    if (frame->id == 0) {
        give_ids_around(frame->up);
        give_id(frame, how, what);
        return;
    }
    culet_buffer_format(&buffer, "{\"kind\":\"name\",\"id\":%u", frame->id);
    culet_frames_add_string(&buffer, "name", what);
    culet_buffer_text(&buffer, "}\n");
    culet_frames_write(&buffer, frame);
}

/* The last entry of $LOADED_FEATURES: what has just been required. */
static VALUE last_feature(void)
{
    VALUE features = rb_gv_get("$LOADED_FEATURES");

    return RB_TYPE_P(features, T_ARRAY) && RARRAY_LEN(features) > 0 ? RARRAY_AREF(features, RARRAY_LEN(features) - 1)
                                                                    : Qnil;
}

static int is_extension(VALUE path)
{
    size_t end = sizeof(DLEXT) - 1;

    return RB_TYPE_P(path, T_STRING) && (size_t)RSTRING_LEN(path) > end &&
           memcmp(RSTRING_END(path) - end, DLEXT, end) == 0;
}

/* The loaded file. A compiled file is known already, unless an extension's C code required it. */
static VALUE loaded_feature(const struct frame *frame)
{
    VALUE feature = last_feature();

    return frame->compiled && !is_extension(feature) ? Qnil : feature;
}

static void add_result(struct culet_buffer *buffer, const struct frame *frame)
{
    culet_buffer_text(buffer, ",\"result\":");
    if (frame->result == Qtrue || frame->result == Qfalse)
        culet_buffer_text(buffer, frame->result == Qtrue ? "true" : "false");
    else if (frame->result == Qundef)
        culet_buffer_text(buffer, "\"left\"");
    else
        culet_buffer_json_string(buffer, rb_class2name(frame->result), strlen(rb_class2name(frame->result)));
}

static void write_end(const struct frame *frame, const struct culet_counters *now)
{
    struct culet_buffer buffer = {NULL, 0, 0, 0};
    struct culet_counters all = culet_counters_since(now, &frame->start);

    culet_buffer_format(&buffer, "{\"kind\":\"end\",\"id\":%u", frame->id);
    add_result(&buffer, frame);
    if (frame->result == Qtrue)
        culet_frames_add_string(&buffer, "path", loaded_feature(frame));
    culet_frames_add_counters(&buffer, &all);
    culet_buffer_text(&buffer, "}\n");
    culet_frames_write(&buffer, frame);
}

void culet_frames_pop(struct frame *frame, const struct culet_counters *now)
{
    int is_last;

    while (culet_frames_top != NULL) {
        struct frame *gone = culet_frames_top;

        if (gone->id != 0) {
            write_end(gone, now);
            culet_counters_tag(gone->tag_before);
        }
        culet_frames_top = gone->up;
        is_last = gone == frame;
        free(gone);
        if (is_last)
            return;
    }
}

int culet_frames_include(const struct frame *frame)
{
    for (const struct frame *other = culet_frames_top; other != NULL; other = other->up)
        if (other == frame)
            return 1;
    return 0;
}
