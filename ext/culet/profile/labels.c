#include "profile/labels.h"

#include <pthread.h>
#include <ruby/debug.h>
#include <ruby/encoding.h>
#include <stdbool.h>
#include <string.h>

#include "common/values.h"
#include "common/vm_lock.h"
#include "profile/active_profile.h"
#include "profile/interned.h"
#include "sampler/core/escape.h"

#define SETS 10000      /* sets with values of their own */
#define VALUE_BYTES 200 /* of a name or value, before escapes */
#define PAIRS 16        /* of a set, at most */
#define SET_BYTES 4096  /* likewise, with escapes */
#define ESCAPED_BYTES (4 * VALUE_BYTES)

struct text {
    const char *bytes;
    size_t length;
};

struct set {
    struct text names[PAIRS], values[PAIRS]; /* by name */
    size_t count;
    char bytes[SET_BYTES]; /* of names and values that are not in `outer` */
    size_t length;
    char outer[SET_BYTES];
};

static struct culet_texts sets = CULET_INTERNED_EMPTY;
static const struct culet_labels_listener *listener;
static ID fiber_label; /* a fiber-local variable: the number of the set */
static VALUE fiber_hook;
static bool running, used, hooked;
static bool boots;                     /* since the start of the profile, or the fork, there was no label */
static _Thread_local uint32_t applied; /* what the profile has as the native thread's label */

void culet_labels_apply(uint32_t label)
{
    if (applied == label)
        return;
    applied = label;
    culet_active_profile->set_label(label);
}

/* ---- the label of a fiber ---- */

/* Qnil: none was ever set. */
static VALUE recorded(void)
{
    return rb_thread_local_aref(rb_thread_current(), fiber_label);
}

uint32_t culet_labels_refresh(void)
{
    VALUE label = recorded();

    culet_labels_apply(RB_FIXNUM_P(label) ? (uint32_t)FIX2ULONG(label) : 0);
    return applied;
}

/* A frozen thread has no fiber-local variables to set. */
static void record(uint32_t label)
{
    VALUE thread = rb_thread_current();

    if (!OBJ_FROZEN(thread))
        rb_thread_local_aset(thread, fiber_label, ULONG2NUM(label));
}

/* ---- switches of fibers ---- */

/* A fiber that has no frame yet has just been started, and inherits the label of the fiber that resumed it. Otherwise a
 * fiber without a label existed before the hook, or is the thread's first. */
static void at_switch(VALUE tracepoint, void *unused)
{
    VALUE frame;
    int line;

    if (NIL_P(recorded()))
        record(rb_profile_frames(0, 1, &frame, &line) == 0 ? applied : 0);
    (void)culet_labels_refresh();
}

static void update_hook(void)
{
    bool wanted = running && used;

    if (wanted == hooked || !culet_in_main_ractor())
        return;
    if (NIL_P(fiber_hook)) {
        fiber_hook = rb_tracepoint_new(Qnil, RUBY_EVENT_FIBER_SWITCH, at_switch, NULL);
        rb_gc_register_mark_object(fiber_hook);
    }
    if (wanted)
        rb_tracepoint_enable(fiber_hook);
    else
        rb_tracepoint_disable(fiber_hook);
    hooked = wanted;
}

void culet_labels_start(void)
{
    running = boots = true;
    update_hook();
    (void)culet_labels_refresh();
}

void culet_labels_stop(void)
{
    running = false;
    update_hook();
}

/* ---- sets ---- */

static int compare(struct text one, struct text other)
{
    size_t length = one.length < other.length ? one.length : other.length;
    int order = memcmp(one.bytes, other.bytes, length);

    return order != 0 ? order : (one.length > other.length) - (one.length < other.length);
}

/* Sets the value of a name; without bytes, removes it. A pair beyond PAIRS is left out. */
static void put(struct set *set, struct text name, struct text value)
{
    size_t at = 0;

    while (at < set->count && compare(set->names[at], name) < 0)
        at++;
    if (at < set->count && compare(set->names[at], name) == 0) {
        set->count--;
        memmove(set->names + at, set->names + at + 1, (set->count - at) * sizeof(*set->names));
        memmove(set->values + at, set->values + at + 1, (set->count - at) * sizeof(*set->values));
    }
    if (value.bytes == NULL || set->count == PAIRS)
        return;
    memmove(set->names + at + 1, set->names + at, (set->count - at) * sizeof(*set->names));
    memmove(set->values + at + 1, set->values + at, (set->count - at) * sizeof(*set->values));
    set->names[at] = name;
    set->values[at] = value;
    set->count++;
}

/* Divides a text of the form name=value TAB name=value, in which neither has a tab and no name has a sign of equality. */
static void put_all(struct set *set, const char *text, size_t length)
{
    const char *end = text + length;

    while (text < end) {
        const char *tab = memchr(text, '\t', (size_t)(end - text)), *past = tab != NULL ? tab : end;
        const char *sign = memchr(text, '=', (size_t)(past - text));
        put(set, (struct text){text, (size_t)(sign - text)}, (struct text){sign + 1, (size_t)(past - sign - 1)});
        text = tab != NULL ? tab + 1 : end;
    }
}

static struct text add_text(struct set *set, VALUE object, char separator)
{
    VALUE string = rb_str_export_to_enc(rb_obj_as_string(object), rb_utf8_encoding());
    size_t length = culet_fitting_bytes(RSTRING_PTR(string), (size_t)RSTRING_LEN(string), VALUE_BYTES);
    char *to = set->bytes + set->length;
    struct text text = {to, culet_profile_escape(to, SET_BYTES - set->length, RSTRING_PTR(string), length, separator)};

    RB_GC_GUARD(string);
    set->length += text.length;
    return text;
}

static int put_pair(VALUE name, VALUE value, VALUE data)
{
    struct set *set = (struct set *)data;

    if (set->length > SET_BYTES - 2 * ESCAPED_BYTES)
        return ST_STOP;
    struct text key = add_text(set, name, '=');
    put(set, key, NIL_P(value) ? (struct text){NULL, 0} : add_text(set, value, 0));
    return ST_CONTINUE;
}

/* Pairs that do not fit are left out. */
static size_t join(const struct set *set, bool values, char *text)
{
    char *to = text;

    for (size_t i = 0; i < set->count; i++) {
        struct text value = values ? set->values[i] : (struct text){"other", 5};
        if (set->names[i].length + value.length + 2 > SET_BYTES - (size_t)(to - text))
            continue;
        if (to > text)
            *to++ = '\t';
        memcpy(to, set->names[i].bytes, set->names[i].length);
        to += set->names[i].length;
        *to++ = '=';
        memcpy(to, value.bytes, value.length);
        to += value.length;
    }
    return (size_t)(to - text);
}

/* Beyond SETS all values are `other`, and beyond the table the names too. */
static uint32_t number_of(const struct set *set)
{
    char text[SET_BYTES];
    size_t length = join(set, true, text);
    uint32_t number;

    if (set->count == 0)
        return 0;
    if ((number = culet_interned_number(&sets, text, length, SETS)) != 0)
        return number;
    length = join(set, false, text);
    if ((number = culet_interned_number(&sets, text, length, CULET_INTERNED_TEXTS - 1)) != 0)
        return number;
    return culet_interned_number(&sets, "other=other", 11, CULET_INTERNED_TEXTS);
}

static uint32_t number_with(uint32_t outer, VALUE pairs)
{
    struct set set; /* large: not cleared */

    set.count = set.length = 0;
    put_all(&set, set.outer, culet_interned_text(&sets, outer, set.outer, sizeof(set.outer)));
    rb_hash_foreach(pairs, put_pair, (VALUE)&set);
    return number_of(&set);
}

/* ---- Culet::Profile.label ---- */

static void change(uint32_t label)
{
    record(label);
    culet_labels_apply(label);
}

/* A block with labels. */
struct block {
    uint32_t before, label;
    uint64_t event; /* of the black box, which has begun with it; 0: none */
};

/* The label set for people: pairs with spaces between them. */
static size_t read_text(uint32_t label, char *text, size_t *pairs)
{
    size_t length = culet_interned_text(&sets, label, text, SET_BYTES);

    *pairs = length > 0;
    for (char *tab = text; (tab = memchr(tab, '\t', (size_t)(text + length - tab))) != NULL; (*pairs)++)
        *tab = ' ';
    return length;
}

void culet_labels_listen(const struct culet_labels_listener *told)
{
    listener = told;
}

static bool has_listener(void)
{
    return listener != NULL && listener->runs();
}

static void enter_event(struct block *block)
{
    char text[SET_BYTES];
    size_t pairs, length;

    if (!has_listener() || block->label == 0)
        return;
    length = read_text(block->label, text, &pairs);
    block->event = listener->enter(text, length);
}

/* An event keeps the label that replaced its first one, such as a controller in the place of a path; not one in addition. */
static void leave_event(const struct block *block)
{
    char text[SET_BYTES];
    size_t outer, inner, length;

    if (!has_listener() || block->event != 0 || block->before == 0 || block->label == 0) {
        if (block->event != 0)
            listener->leave(block->event);
        return;
    }
    (void)read_text(block->label, text, &inner);
    length = read_text(block->before, text, &outer);
    if (inner > outer)
        (void)listener->enter(text, length);
}

/* A program that sets a label serves its first request, or runs its first job. */
static void end_boot(void)
{
    if (!boots || !running)
        return;
    boots = false;
    culet_active_profile->booted();
}

static VALUE restore(VALUE data)
{
    const struct block *block = (const struct block *)data;

    change(block->before);
    leave_event(block);
    return Qnil;
}

/* Culet::Profile.label(name: value, ...) { }: what the block allocates is attributed to these labels and those around
 * it, of which it replaces those of the same name; nil removes one. Fibers that the block starts inherit them, threads
 * do not. Values are cut after 200 bytes. The first label ends the boot, as Culet::Profile.booted does. Returns the
 * block's value. */
static VALUE profile_label(int argc, VALUE *argv, VALUE self)
{
    VALUE pairs;
    struct block block = {.event = 0};

    rb_scan_args(argc, argv, "0:", &pairs);
    rb_need_block();
    block.before = culet_labels_refresh();
    block.label = NIL_P(pairs) ? block.before : number_with(block.before, pairs);
    if (!used || !hooked) {
        used = true;
        update_hook();
    }
    end_boot();
    change(block.label);
    enter_event(&block);
    return rb_ensure(rb_yield, Qundef, restore, (VALUE)&block);
}

/* Culet::Profile.labels: the names and values in effect, a Hash of Strings. Control characters, backslashes and bytes
 * that are not UTF-8 are \\xNN in these, as in the stream. */
static VALUE profile_labels(VALUE self)
{
    VALUE hash = rb_hash_new();
    struct set set; /* large: not cleared */

    set.count = 0;
    put_all(&set, set.outer, culet_interned_text(&sets, culet_labels_refresh(), set.outer, sizeof(set.outer)));
    for (size_t i = 0; i < set.count; i++)
        rb_hash_aset(hash, rb_utf8_str_new(set.names[i].bytes, (long)set.names[i].length),
                     rb_utf8_str_new(set.values[i].bytes, (long)set.values[i].length));
    return hash;
}

uint64_t culet_labels_write(struct culet_buffer *buffer, const culet_interned_bits which)
{
    return culet_interned_write(&sets, buffer, 'L', which);
}

static void begin_boot(void)
{
    boots = true;
}

void culet_init_profile_labels(VALUE profile)
{
    int error;

    fiber_hook = Qnil;
    fiber_label = rb_intern("__culet_profile_label__");
    if ((error = culet_interned_prepare()) != 0 || (error = pthread_atfork(NULL, NULL, begin_boot)) != 0)
        rb_syserr_fail(error, "pthread_atfork");
    rb_define_singleton_method(profile, "label", profile_label, -1);
    rb_define_singleton_method(profile, "labels", profile_labels, 0);
}
