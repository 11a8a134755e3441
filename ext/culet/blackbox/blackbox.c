#include "blackbox/blackbox.h"

#include <pthread.h>
#include <ruby/vm.h>
#include <string.h>

#include "blackbox/box.h"
#include "blackbox/events.h"
#include "blackbox/holders.h"
#include "blackbox/ticker.h"
#include "common/values.h"
#include "profile/labels.h"
#include "reading/reading.h"
#include "reading/ruby_stats.h"
#include "trim/gc_watch.h"

static ID fiber_event; /* a fiber-local variable: the event that runs in the fiber */
static uint64_t notes;

/* ---- events ---- */

/* A frozen thread has no fiber-local variables to set. */
static void set_event(uint64_t event)
{
    VALUE thread = rb_thread_current();

    if (!OBJ_FROZEN(thread))
        rb_thread_local_aset(thread, fiber_event, event == 0 ? Qnil : ULL2NUM(event));
}

/* Of blocks with labels, the outermost in a fiber is an event: begins it, or gives it another label. */
static uint64_t enter(const char *label, size_t length)
{
    VALUE outer = rb_thread_local_aref(rb_thread_current(), fiber_event);
    uint64_t event;

    if (RB_FIXNUM_P(outer)) {
        culet_events_rename(FIX2ULONG(outer), label, length);
        return 0;
    }
    event = culet_events_begin(label, length);
    set_event(event);
    return event;
}

static void leave(uint64_t event)
{
    culet_events_end(event);
    set_event(0);
}

static const struct culet_labels_listener label_blocks = {culet_box_mapped, enter, leave};

/* ---- start and end ---- */

static void on_collection(int major)
{
    if (culet_box_mapped())
        culet_ruby_stats_note();
}

static void reset_in_child(void)
{
    culet_box_forget();
    culet_ticker_reset();
    culet_holders_reset();
    culet_events_reset();
    notes = 0;
}

static void stop_at_exit(ruby_vm_t *vm)
{
    culet_ticker_stop();
}

/* Once. */
static void prepare(void)
{
    static bool prepared;
    int error;

    if (prepared)
        return;
    if ((error = pthread_atfork(NULL, NULL, reset_in_child)) != 0)
        rb_syserr_fail(error, "pthread_atfork");
    culet_gc_watch(on_collection);
    culet_labels_listen(&label_blocks);
    ruby_vm_at_exit(stop_at_exit);
    prepared = true;
}

/* Culet::BlackBox.map(descriptor, head, files, seconds): allocates and maps the file, and starts the thread. head: the
 * lines that describe the process. files: as of culet_group_of. seconds: between two looks at what keeps the memory; 0:
 * none. Raises SystemCallError. */
static VALUE blackbox_map(VALUE self, VALUE descriptor, VALUE head, VALUE files, VALUE seconds)
{
    struct culet_group group = culet_group_of(files);
    int error;

    Check_Type(head, T_STRING);
    prepare();
    culet_reading_prepare();
    culet_holders_prepare(NUM2ULL(seconds));
    if ((error = culet_box_map(NUM2INT(descriptor))) != 0)
        rb_syserr_fail(error, NULL);
    culet_box_write(CULET_BOX_HEAD, culet_box_slot(CULET_BOX_HEAD, 0), 1, culet_clock(CLOCK_REALTIME),
                    RSTRING_PTR(head), (size_t)RSTRING_LEN(head));
    if ((error = culet_ticker_start(&group)) != 0) {
        culet_box_unmap();
        rb_syserr_fail(error, "cannot create a thread for the black box");
    }
    RB_GC_GUARD(head);
    return Qnil;
}

/* Culet::BlackBox.close: ends the thread; nothing is written any more. */
static VALUE blackbox_close(VALUE self)
{
    culet_ticker_stop();
    culet_box_unmap();
    return Qnil;
}

/* Culet::BlackBox.mark(text): how the process ends; nil: it goes on after all. */
static VALUE blackbox_mark(VALUE self, VALUE text)
{
    void *slot = culet_box_slot(CULET_BOX_END, 0);

    if (NIL_P(text)) {
        culet_box_clear(slot);
        return Qnil;
    }
    Check_Type(text, T_STRING);
    culet_box_write(CULET_BOX_END, slot, 1, culet_clock(CLOCK_REALTIME), RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    return Qnil;
}

/* Culet::BlackBox.note(text, bytes): adds a note. */
static VALUE blackbox_note(VALUE self, VALUE text, VALUE bytes)
{
    struct culet_box_note note = {.bytes = NIL_P(bytes) ? CULET_UNKNOWN : NUM2ULL(bytes)};
    size_t length;

    Check_Type(text, T_STRING);
    length = (size_t)RSTRING_LEN(text) < sizeof(note.text) ? (size_t)RSTRING_LEN(text) : sizeof(note.text);
    memcpy(note.text, RSTRING_PTR(text), length);
    notes++;
    culet_box_write(CULET_BOX_NOTES, culet_box_slot(CULET_BOX_NOTES, notes), notes, culet_clock(CLOCK_REALTIME), &note,
                    offsetof(struct culet_box_note, text) + length);
    return Qnil;
}

/* Culet::BlackBox.running?: whether this process has a black box. */
static VALUE blackbox_running(VALUE self)
{
    return culet_box_mapped() && !culet_box_lost() ? Qtrue : Qfalse;
}

/* Culet::BlackBox.stats: a Hash: readings: and profiles: written since the start; events: requests and jobs that have
 * begun; seconds: processor time of the thread, a Float. */
static VALUE blackbox_stats(VALUE self)
{
    struct culet_ticker_stats stats = culet_ticker_stats();
    VALUE hash = rb_hash_new();
    uint64_t running, begun;

    culet_events_count(&running, &begun);
    culet_hash_set_number(hash, "readings", stats.readings);
    culet_hash_set_number(hash, "profiles", stats.profiles);
    culet_hash_set_number(hash, "events", begun);
    culet_hash_set(hash, "seconds", rb_float_new((double)stats.processor_time * 1e-9));
    return hash;
}

void culet_init_blackbox(VALUE culet)
{
    VALUE blackbox = rb_define_module_under(culet, "BlackBox"), singleton = rb_singleton_class(blackbox);

    fiber_event = rb_intern("__culet_blackbox_event__");
    rb_define_private_method(singleton, "map", blackbox_map, 4);
    rb_define_private_method(singleton, "close", blackbox_close, 0);
    rb_define_private_method(singleton, "mark", blackbox_mark, 1);
    rb_define_private_method(singleton, "note", blackbox_note, 2);
    rb_define_singleton_method(blackbox, "running?", blackbox_running, 0);
    rb_define_singleton_method(blackbox, "stats", blackbox_stats, 0);
}
