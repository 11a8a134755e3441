#include "profile/frames.h"

#include <pthread.h>
#include <string.h>

#include "common/job.h"
#include "sampler/core/escape.h"
#include "sampler/core/futex.h"
#include "sampler/core/index.h"
#include "profile/interpreter.h"
#include "profile/labels.h"
#include "sampler/core/memory.h"
#include "profile/readers.h"
#include "profile/texts.h"
#include "sampler/core/tls.h"

#define FRAMES ((uint32_t)1 << 18)
#define NAMES ((uint32_t)1 << 17)
#define NAME_BYTES 1024 /* longer names are cut */
#define UNKNOWN_NAME 1  /* "?", also of names that have no room */
#define LINE_MASK 0xffffffu
#define IDLE_COLLECTIONS 2

/* Exported by every Ruby, declared by some. */
int ruby_thread_has_gvl_p(void);

/* MARKED frames keep their code alive. Others are looked up by content, since another object may have the address. The
 * name of a C function cannot be asked for without the GVL: what is seen there first is KEPT marked. */
enum { IS_C = 1, NAMED = 2, MARKED = 4, KEPT = 8 };

struct frame {
    VALUE value;          /* what rb_profile_frames reports */
    uint32_t path, label; /* names; 0 until named */
    uint32_t base;        /* name of the method alone */
    uint32_t first_line : 24, flags : 8;
    uint32_t last_use; /* number of the major collection before */
};

static struct culet_texts names = {.most = NAMES, .most_bytes = (size_t)16 << 20};
static struct frame *frames;            /* by id; 0 is not used */
static struct culet_index values_index; /* VALUE => id of the last frame that had it */
static _Atomic uint32_t count;          /* those up to it are complete */
static uint32_t named;
static uint32_t collections;
static _Atomic bool enabled;
static struct culet_futex lock;
static CULET_TLS bool holding; /* the lock */

/* A signal handler that interrupts the table's owner must not wait for the lock, nor another library's fork handler, which
 * may allocate between ours. The owner is known by the thread's own memory: in a child it has another thread number. */
static bool enter(void)
{
    if (holding)
        return false;
    holding = true;
    culet_futex_lock(&lock);
    return true;
}

static void leave(void)
{
    culet_futex_unlock(&lock);
    holding = false;
}

/* ---- the table, with the lock ---- */

static uint64_t hash_of(const void *unused, uint32_t id)
{
    return culet_index_mix(frames[id].value);
}

/* The slot of a value's id; an empty one: the value is new. */
static uint32_t slot_of(VALUE value)
{
    uint32_t at = culet_index_first(&values_index, culet_index_mix(value));

    while (values_index.slot[at] != 0 && frames[values_index.slot[at]].value != value)
        at = culet_index_next(&values_index, at);
    return at;
}

static size_t name_length(size_t length)
{
    return length < NAME_BYTES ? length : NAME_BYTES;
}

static bool is_string(uint32_t name, VALUE string)
{
    size_t length;
    const char *text = culet_texts_get(&names, name, &length);

    return RB_TYPE_P(string, T_STRING) && length == name_length((size_t)RSTRING_LEN(string)) &&
           memcmp(text, RSTRING_PTR(string), length) == 0;
}

/* None of these allocates. */
static uint32_t first_line_of(VALUE value)
{
    VALUE line = rb_profile_frame_first_lineno(value);

    return FIXNUM_P(line) ? (uint32_t)FIX2LONG(line) & LINE_MASK : 0;
}

/* Without the class, whose name would be allocated. C functions have no line, and on Ruby 3.1 no path and no label. */
static VALUE base_of(VALUE value, bool is_c)
{
    return is_c ? rb_profile_frame_method_name(value) : rb_profile_frame_base_label(value);
}

/* The path of a frame: absolute, or as given to eval. Allocates nothing. */
static VALUE path_of(VALUE value)
{
    VALUE path = rb_profile_frame_absolute_path(value);

    return RB_TYPE_P(path, T_STRING) ? path : rb_profile_frame_path(value);
}

static bool is_same(const struct frame *frame, VALUE value)
{
    VALUE path = path_of(value);
    bool is_c = NIL_P(rb_profile_frame_first_lineno(value));

    return is_c == ((frame->flags & IS_C) != 0) && frame->first_line == first_line_of(value) &&
           (is_c || is_string(frame->path, path)) && is_string(frame->base, base_of(value, is_c));
}

/* In place of the frame that had the value before, if there is one. */
static uint32_t add(VALUE value, uint32_t slot, bool has_gvl)
{
    uint32_t former = values_index.slot[slot], id = count + 1;
    bool is_c = NIL_P(rb_profile_frame_first_lineno(value));

    if (id >= FRAMES)
        return 0;
    frames[id] = (struct frame){.value = value,
                                .first_line = first_line_of(value),
                                .flags = MARKED | (is_c ? IS_C : 0) | (is_c && !has_gvl ? KEPT : 0),
                                .last_use = collections};
    if (former != 0) {
        frames[former].value = 0;
        values_index.slot[slot] = id;
    } else {
        culet_index_add(&values_index, slot, id);
    }
    count = id;
    return id;
}

/* Whether a frame that is not marked is the one that was reported. */
static bool is_still(const struct frame *frame, VALUE value, bool has_gvl)
{
    return (has_gvl || ((frame->flags & IS_C) == 0 && !NIL_P(rb_profile_frame_first_lineno(value)))) &&
           is_same(frame, value);
}

/* The id of a frame; 0: no room. */
static uint32_t find(VALUE value, bool has_gvl)
{
    bool room = culet_index_reserve(&values_index, hash_of, NULL);
    uint32_t slot = slot_of(value), id = values_index.slot[slot];
    struct frame *frame = &frames[id];

    if (id == 0)
        return room ? add(value, slot, has_gvl) : 0;
    if ((frame->flags & MARKED) == 0 && !is_still(frame, value, has_gvl))
        return add(value, slot, has_gvl);
    frame->flags |= MARKED;
    frame->last_use = collections;
    return id;
}

/* ---- a sample ---- */

static void job(void *unused);
static struct culet_job naming = {.function = job};

/* Why Ruby cannot be asked for frames now; 0: it can. */
static enum culet_mark obstacle(bool has_gvl)
{
    if (!enabled)
        return CULET_MARK_BOOT;
    if (!ruby_native_thread_p())
        return CULET_MARK_NO_GVL;
    if (has_gvl && rb_during_gc())
        return CULET_MARK_GC;
    return ruby_stack_check() ? CULET_MARK_TRUNCATED : 0; /* there is no room for frames */
}

/* The innermost frames of the thread. Returns their number, or -1 inside of a signal handler that interrupted this very
 * function. */
static int ruby_words(uint64_t *words, bool *is_c, bool has_gvl)
{
    VALUE values[CULET_PROFILE_FRAMES];
    int lines[CULET_PROFILE_FRAMES];
    int found = rb_profile_frames(0, CULET_PROFILE_FRAMES, values, lines);
    uint32_t before;

    if (!enter())
        return -1;
    before = count;
    for (int i = 0; i < found; i++) {
        uint32_t id = find(values[i], has_gvl);
        is_c[i] = id != 0 && (frames[id].flags & IS_C) != 0;
        words[i] = id == 0 ? culet_word_mark(CULET_MARK_FULL) : culet_word_ruby(id, is_c[i] ? 0 : (uint32_t)lines[i]);
    }
    /* below the program's first frame Ruby has one without a line, for C code that evaluates at the top level */
    if (found > 1 && lines[found - 1] == 0 && !is_c[found - 1])
        found--;
    before = count - before;
    leave();
    if (before > 0)
        culet_job_trigger(&naming);
    return found;
}

/* Not inlined: threads without Ruby's frames may have small stacks. */
static __attribute__((noinline)) size_t all_words(const uintptr_t *pcs, size_t pc_count, bool has_gvl, uint64_t *words,
                                                  size_t max)
{
    uint64_t ruby[CULET_PROFILE_FRAMES];
    bool is_c[CULET_PROFILE_FRAMES];
    int found = ruby_words(ruby, is_c, has_gvl);

    if (found < 0)
        return culet_merge_mark(culet_interpreter(), pcs, pc_count, CULET_MARK_SIGNAL, words, max);
    if (has_gvl)
        (void)culet_labels_refresh(); /* a Ruby thread may have moved to another native thread */
    if (found == CULET_PROFILE_FRAMES)
        ruby[found - 1] = culet_word_mark(CULET_MARK_TRUNCATED);
    return culet_merge(culet_interpreter(), pcs, pc_count, ruby, is_c, (size_t)found, words, max);
}

size_t culet_profile_frames_words(const uintptr_t *pcs, size_t pc_count, uint64_t *words, size_t max)
{
    bool is_ruby = enabled && ruby_native_thread_p(), has_gvl = is_ruby && ruby_thread_has_gvl_p();
    enum culet_mark mark = obstacle(has_gvl);

    if (mark == 0 && !has_gvl && !culet_readers_begin())
        mark = CULET_MARK_NO_GVL;
    if (mark != 0)
        return culet_merge_mark(culet_interpreter(), pcs, pc_count, mark, words, max);
    size_t length = all_words(pcs, pc_count, has_gvl, words, max);
    if (!has_gvl)
        culet_readers_end();
    return length;
}

/* ---- names ---- */

static uint32_t add_text(const char *text, size_t length)
{
    uint32_t name = culet_texts_add(&names, text, name_length(length), NAMES);

    return name != 0 ? name : UNKNOWN_NAME;
}

static uint32_t add_name(VALUE string)
{
    if (!RB_TYPE_P(string, T_STRING))
        return add_text("", 0);
    return add_text(RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

/* Classes without a name have their address in the label: "#<Class:0x00007f3b8c0d1e20>#call" becomes "#<Class>#call" */
static uint32_t add_label(VALUE label)
{
    char text[NAME_BYTES];
    size_t length = 0;
    const char *from, *past;

    if (!RB_TYPE_P(label, T_STRING))
        return UNKNOWN_NAME;
    past = RSTRING_END(label);
    for (from = RSTRING_PTR(label); from < past && length < sizeof(text); from++) {
        if (past - from > 3 && memcmp(from, ":0x", 3) == 0) {
            const char *digits = from + 3;
            while (digits < past && strchr("0123456789abcdef", *digits) != NULL && *digits != '\0')
                digits++;
            if (digits < past && *digits == '>')
                from = digits;
        }
        text[length++] = *from;
    }
    return add_text(text, length);
}

static void set_names(struct frame *frame, VALUE path, VALUE label, VALUE base)
{
    if (!enter())
        return;
    frame->path = (frame->flags & IS_C) != 0 ? add_text("<cfunc>", 7) : add_name(path);
    frame->label = add_label(label);
    frame->base = add_name(base);
    frame->flags |= NAMED;
    leave();
    RB_GC_GUARD(path);
    RB_GC_GUARD(label);
    RB_GC_GUARD(base);
}

static void name(struct frame *frame)
{
    VALUE label = rb_profile_frame_full_label(frame->value);

    if (NIL_P(label))
        label = rb_profile_frame_label(frame->value);
    set_names(frame, path_of(frame->value), label, base_of(frame->value, (frame->flags & IS_C) != 0));
}

/* Naming allocates, and these allocations are sampled: frames that are new since the start wait for the next job. Several
 * Ractors may do this at once. */
void culet_profile_frames_name(void)
{
    uint32_t known = count;

    for (uint32_t id = named + 1; id <= known; id++) {
        if ((frames[id].flags & NAMED) == 0)
            name(&frames[id]);
        if (named < id)
            named = id;
    }
}

static VALUE name_protected(VALUE unused)
{
    culet_profile_frames_name();
    return Qnil;
}

/* Without memory the frames are named later. */
static void job(void *unused)
{
    int failure = 0;
    VALUE error = rb_errinfo();

    culet_interpreter_find_deferred((uintptr_t)__builtin_return_address(0));
    rb_protect(name_protected, Qnil, &failure);
    if (failure)
        rb_set_errinfo(error);
}

/* ---- garbage collections ---- */

/* During GC, when no thread changes the table. A marked object is not moved either. */
static void mark(void *unused)
{
    culet_readers_wait();
    for (uint32_t id = 1; id <= count; id++) {
        struct frame *frame = &frames[id];
        if ((frame->flags & MARKED) == 0)
            continue;
        if ((frame->flags & (NAMED | KEPT)) == NAMED && collections - frame->last_use >= IDLE_COLLECTIONS)
            frame->flags &= (uint8_t)~MARKED;
        else
            rb_gc_mark(frame->value);
    }
}

static const rb_data_type_t type = {.wrap_struct_name = "culet/profile_frames", .function = {.dmark = mark}};

void culet_profile_frames_collection(void)
{
    collections++;
}

/* ---- the stream ---- */

static void write_name(struct culet_buffer *buffer, uint32_t name)
{
    char text[4 * NAME_BYTES]; /* all bytes of a name escaped */
    size_t length;
    const char *bytes = culet_texts_get(&names, name, &length);

    culet_buffer_add(buffer, text, culet_profile_escape(text, sizeof(text), bytes, length, 0));
}

uint32_t culet_profile_frames_count(void)
{
    return count;
}

void culet_profile_frames_write(struct culet_buffer *buffer, uint32_t id)
{
    const struct frame *frame = &frames[id];

    (void)enter();
    culet_buffer_format(buffer, "F %u %u ", id, (unsigned)frame->first_line);
    write_name(buffer, frame->path);
    culet_buffer_text(buffer, "\t");
    write_name(buffer, frame->label);
    culet_buffer_text(buffer, "\n");
    leave();
}

/* ---- set-up and fork ---- */

static void lock_for_fork(void)
{
    (void)enter();
}

static void unlock_child(void)
{
    culet_futex_reset(&lock);
    culet_readers_forget();
    holding = false;
}

bool culet_profile_frames_prepare(void)
{
    if (frames == NULL)
        frames = culet_profile_map(FRAMES * sizeof(*frames));
    if (frames == NULL || !(values_index.slot != NULL || culet_index_create(&values_index)) ||
        !culet_texts_prepare(&names) || add_text("?", 1) != UNKNOWN_NAME)
        return false;
    if (!culet_job_prepare(&naming) || pthread_atfork(lock_for_fork, leave, unlock_child) != 0)
        return false;
    rb_gc_register_mark_object(TypedData_Wrap_Struct(rb_cObject, &type, frames));
    return true;
}

void culet_profile_frames_enable(bool whether)
{
    enabled = whether;
}
