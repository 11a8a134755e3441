#include "profile/objects.h"

#include <errno.h>
#include <math.h>
#include <ruby/debug.h>
#include <ruby/ractor.h>
#include <ruby/version.h>
#include <ruby/vm.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/heap_walk.h"
#include "common/job.h"
#include "common/object_bytes.h"
#include "common/pages.h"
#include "reading/ruby_stats.h"
#include "common/values.h"
#include "common/vm_lock.h"
#include "profile/active_profile.h"
#include "profile/internal_slots.h"
#include "profile/interned.h"
#include "profile/labels.h"
#include "profile/liveness.h"
#include "profile/windows.h"
#include "sampler/core/escape.h"

#define TYPES 10000    /* beyond: `other` */
#define NAME_BYTES 200 /* of a class, before escapes */
#define PENDING 64     /* samples of a window, at most */
#define SAMPLES 4      /* of a window, on average */
#define AVERAGED 64    /* windows in the averages */

#define BESIDE_RACTORS "this version of Ruby cannot report them beside Ractors"

/* A sample, until the window's end. */
struct pending {
    VALUE object;
    size_t size;
    double probability; /* in the window */
    double merged;      /* samples that it stands for */
    uint32_t label;
    size_t count;
    uint64_t words[CULET_PROFILE_FRAMES];
};

static struct {
    bool active;             /* between start and stop */
    bool enabled;            /* the hook */
    bool beside_ractors;     /* a Ractor was started where Ruby cannot have both */
    double mean;             /* distance between two samples in a window, in bytes */
    double distance;         /* to the next one */
    unsigned thinned;        /* of a sample in a window, 1 in 2^thinned is kept */
    size_t bytes;            /* of the objects that the hook has seen */
    unsigned windows;        /* so far, at most AVERAGED */
    double bytes_per_window; /* on average */
    uint64_t random;
    size_t pending_count;
    struct pending *pending;
    uint64_t allocated_at_close;
    double allocated, estimated; /* objects since the start: all of them, and as the samples estimate them */
    double seen, sampled;        /* by the hook; those that may become samples */
} sampler;

static struct culet_texts types = CULET_INTERNED_EMPTY;
static VALUE hook;                             /* TracePoint */
static culet_heap_memsize_function *slot_size; /* NULL: all slots have the size below */
static size_t base_slot_bytes;

/* ---- GC roots ---- */

static void mark(void *unused)
{
    rb_gc_mark(hook);
    for (size_t i = 0; i < sampler.pending_count; i++)
        rb_gc_mark(sampler.pending[i].object);
}

static const rb_data_type_t roots_type = {.wrap_struct_name = "culet/profile_objects", .function = {.dmark = mark}};

/* ---- the hook ---- */

static void job(void *unused);
static struct culet_job window_job = {.function = job};

/* Whether programs can have the object. Others have no class. */
static bool is_visible(VALUE object)
{
    int type = RB_BUILTIN_TYPE(object);

    return type != T_NONE && type != T_IMEMO && type != T_ICLASS && type != T_NODE && type != T_ZOMBIE &&
           type != T_MOVED && RBASIC_CLASS(object) != 0;
}

static bool is_followed(VALUE object)
{
    return is_visible(object) || culet_internal_slots_has(object);
}

static double draw_distance(void)
{
    return -log(culet_windows_random(&sampler.random)) * sampler.mean;
}

/* Makes room: drops each sample of the window with probability 1/2, and those to come. */
static void thin(void)
{
    size_t kept = 0;

    for (size_t i = 0; i < sampler.pending_count; i++)
        if (culet_windows_random(&sampler.random) < 0.5)
            sampler.pending[kept++] = sampler.pending[i];
    sampler.pending_count = kept;
    sampler.thinned++;
}

static void capture(struct pending *sample)
{
    struct culet_windows_span span = culet_windows_begin();

    sample->label = culet_labels_refresh();
    sample->count = culet_active_profile->capture(sample->words, CULET_PROFILE_FRAMES);
    culet_windows_end(span);
}

/* The object is not initialized yet, and no object can be allocated here: the rest follows when the window closes. */
static void take(VALUE object, size_t size)
{
    struct pending *sample;

    bool kept = culet_windows_random(&sampler.random) < ldexp(1, -(int)sampler.thinned);

    while (kept && sampler.pending_count == PENDING) {
        thin();
        kept = culet_windows_random(&sampler.random) < 0.5;
    }
    if (!kept)
        return;
    sample = &sampler.pending[sampler.pending_count];
    sample->object = object;
    sample->size = size;
    sample->probability = -expm1(-(double)size / sampler.mean);
    sample->merged = 1;
    capture(sample);
    sampler.pending_count++;
}

#if RUBY_API_VERSION_MAJOR == 3 && RUBY_API_VERSION_MINOR < 2
/* Not in Ruby's headers: NULL once there has been a second Ractor. */
extern const void *ruby_single_main_ractor;

/* Before Ruby 3.2 a Ractor crashes that allocates while another one's hook is on (Bug #18464). Returns whether this is
 * one that is to start. */
static bool stop_for_ractor(VALUE object)
{
    if (RB_BUILTIN_TYPE(object) != T_DATA || rb_class_inherited_p(RBASIC_CLASS(object), rb_cRactor) != Qtrue)
        return false;
    rb_tracepoint_disable(hook);
    sampler.beside_ractors = true;
    culet_job_trigger(&window_job);
    return true;
}

static bool has_ractors(void)
{
    return ruby_single_main_ractor == NULL;
}
#else
static bool stop_for_ractor(VALUE object)
{
    return false;
}

static bool has_ractors(void)
{
    return false;
}
#endif

static void at_allocation(VALUE tracepoint, void *unused)
{
    VALUE object = rb_tracearg_object(rb_tracearg_from_tracepoint(tracepoint));
    size_t size = slot_size != NULL ? slot_size(object) : base_slot_bytes;

    culet_windows_count();
    sampler.seen++;
    if (!is_followed(object))
        return;
    if (stop_for_ractor(object))
        return;
    sampler.sampled++;
    sampler.bytes += size;
    sampler.distance -= (double)size;
    if (sampler.distance > 0)
        return;
    sampler.distance = draw_distance();
    take(object, size);
}

/* ---- types ---- */

/* The name of a class. One without a name is named after its first ancestor that has one. Calls no method. */
static size_t class_name(VALUE klass, char *name, size_t size)
{
    VALUE named = klass, string;
    size_t length;
    int written;

    while (NIL_P(string = rb_mod_name(named)) && RTEST(rb_class_superclass(named)))
        named = rb_class_superclass(named);
    if (NIL_P(string))
        return (size_t)snprintf(name, size, "Class.new");
    length = (size_t)RSTRING_LEN(string) < NAME_BYTES ? (size_t)RSTRING_LEN(string) : NAME_BYTES;
    written = snprintf(name, size, named == klass ? "%.*s" : "Class.new(%.*s)", (int)length, RSTRING_PTR(string));
    RB_GC_GUARD(string);
    return (size_t)written;
}

static uint32_t type_of(VALUE object)
{
    char name[NAME_BYTES + 32], escaped[4 * sizeof(name)];
    size_t length = culet_internal_slots_has(object) ? culet_internal_slots_name(object, name, sizeof(name))
                                                     : class_name(rb_class_real(CLASS_OF(object)), name, sizeof(name));
    uint32_t number;

    length = culet_profile_escape(escaped, sizeof(escaped), name, length, 0);
    number = culet_interned_number(&types, escaped, length, TYPES);
    return number != 0 ? number : culet_interned_number(&types, "other", 5, CULET_INTERNED_TEXTS);
}

uint64_t culet_objects_write_totals(struct culet_buffer *buffer)
{
    if (sampler.estimated < 1 || sampler.seen < 1)
        return 0;
    culet_buffer_format(buffer, "O %.0f %.0f %d\n", sampler.allocated * sampler.sampled / sampler.seen,
                        sampler.estimated, culet_transient_exists());
    return 1;
}

uint64_t culet_objects_write_types(struct culet_buffer *buffer, const culet_interned_bits used)
{
    return culet_interned_write(&types, buffer, 'T', used);
}

/* Adds the objects since the last call. */
static void count_allocated(void)
{
    uint64_t now = culet_ruby_stat_now(CULET_RUBY_OBJECTS);

    sampler.allocated += (double)(now - sampler.allocated_at_close);
    sampler.allocated_at_close = now;
}

/* Before the profile is written. On a busy machine the last window may be long ago. */
void culet_objects_check(void)
{
    if (sampler.active)
        count_allocated();
    if (culet_in_main_ractor()) {
        culet_liveness_check();
        culet_internal_slots_check();
    }
}

void culet_objects_addresses(VALUE *addresses, size_t count)
{
    culet_liveness_addresses(addresses, count);
    culet_internal_slots_addresses(addresses, count);
}

/* ---- windows ---- */

/* The number of objects that one in a window stands for, by the share of time that windows cover. The windows themselves
 * cost the program time, and some are late: so the reader of the profile scales the samples by the number of all objects
 * over the number that they estimate (line O). */
static double objects_for_each(void)
{
    return fmax(1 / culet_windows_share(), 1);
}

/* A window gets SAMPLES on average, or fewer: those of one window resemble each other. */
static void open_window(void)
{
    double mean = (double)culet_active_profile->sample_bytes() / objects_for_each();

    sampler.mean = fmax(fmax(mean, sampler.bytes_per_window / SAMPLES), 1);
    sampler.distance = draw_distance();
    sampler.thinned = 0;
    sampler.bytes = 0;
    sampler.enabled = true;
    rb_tracepoint_enable(hook);
}

static void add_sample(const struct pending *sample, double objects)
{
    double weight = objects / sample->probability * sample->merged * ldexp(1, (int)sampler.thinned);
    uint32_t number;

    bool internal = culet_internal_slots_has(sample->object);
    size_t size = sample->size + culet_transient_bytes(sample->object);

    if (!is_followed(sample->object) || !(internal ? culet_internal_slots_has_room() : culet_liveness_has_room()))
        return;
    culet_labels_apply(sample->label);
    number = culet_active_profile->add(CULET_PROFILE_OBJECT, NULL, size, weight, type_of(sample->object), sample->words,
                                       sample->count);
    (void)culet_labels_refresh();
    if (number == 0)
        return;
    sampler.estimated += weight;
    if (internal)
        culet_internal_slots_add(sample->object, number);
    else
        culet_liveness_add(sample->object, number);
}

/* Of internal slots, the word of the class is another one. */
static bool same_class(VALUE one, VALUE other)
{
    if (culet_internal_slots_has(one) || culet_internal_slots_has(other))
        return RB_BUILTIN_TYPE(one) == RB_BUILTIN_TYPE(other) &&
               (RB_BUILTIN_TYPE(one) == T_ICLASS || culet_internal_slots_same_kind(one, other));
    return RBASIC_CLASS(one) == RBASIC_CLASS(other);
}

static bool same_site(const struct pending *one, const struct pending *other)
{
    return one->count == other->count && one->label == other->label && one->size == other->size &&
           same_class(one->object, other->object) &&
           memcmp(one->words, other->words, one->count * sizeof(*one->words)) == 0;
}

/* Code that allocates in bursts has several samples of a site in one window and none in others. The estimated variance
 * takes samples for independent, so those of a window and a site become one: any of them, with the weight of all. */
static void merge(void)
{
    struct pending *pending = sampler.pending;
    size_t kept = 0;

    for (size_t i = 0; i < sampler.pending_count; i++) {
        size_t at = 0;
        while (at < kept && !same_site(&pending[at], &pending[i]))
            at++;
        if (at == kept) {
            pending[kept++] = pending[i];
            continue;
        }
        pending[at].merged++;
        if (culet_windows_random(&sampler.random) * pending[at].merged < 1)
            pending[at].object = pending[i].object;
    }
    sampler.pending_count = kept;
}

static void close_window(void)
{
    double objects;

    rb_tracepoint_disable(hook);
    sampler.enabled = false;
    sampler.windows = sampler.windows < AVERAGED ? sampler.windows + 1 : AVERAGED;
    sampler.bytes_per_window += ((double)sampler.bytes - sampler.bytes_per_window) / sampler.windows;
    count_allocated();
    objects = objects_for_each();
    merge();
    for (size_t i = 0; i < sampler.pending_count; i++)
        add_sample(&sampler.pending[i], objects);
    sampler.pending_count = 0;
}

/* ---- the postponed job ---- */

static VALUE switch_window(VALUE unused)
{
    struct culet_windows_span span;
    bool wanted = culet_windows_wanted() && sampler.active;

    sampler.beside_ractors |= has_ractors();
    wanted = wanted && !sampler.beside_ractors;
    if (wanted == sampler.enabled)
        return Qnil;
    span = culet_windows_begin();
    if (wanted)
        open_window();
    else
        close_window();
    culet_windows_end(span);
    if (!wanted)
        culet_liveness_update();
    return Qnil;
}

/* Not by Ruby's warn: the job may run at any point of the program. */
static void give_up(const char *reason)
{
    sampler.active = false;
    culet_windows_stop();
    dprintf(STDERR_FILENO, "culet: the profile samples no more objects: %s\n", reason);
}

/* In a Ruby thread, not during GC. Calls no method: those check for interrupts, and Ruby discards what is raised in a job,
 * be it another thread's Thread#kill or a timeout. Keeps errno, which the interrupted function may not have read yet. A
 * forked child's first job starts its thread. */
static void job(void *unused)
{
    int failure = 0, error, saved_errno = errno;

    if (!(sampler.active || sampler.enabled) || !culet_in_main_ractor())
        return;
    rb_protect(switch_window, Qnil, &failure);
    if (failure) {
        give_up(rb_obj_classname(rb_errinfo()));
        rb_set_errinfo(Qnil);
    } else if (sampler.active && sampler.beside_ractors) {
        give_up(BESIDE_RACTORS);
    } else if (sampler.active && (error = culet_windows_start()) != 0) {
        give_up(strerror(error));
    }
    errno = saved_errno;
}

/* If Ruby's queue is full, the window's next job comes later. */
static void trigger_job(void)
{
    culet_job_trigger(&window_job);
}

/* ---- start and stop ---- */

static void stop_at_exit(ruby_vm_t *vm)
{
    culet_windows_stop();
}

static void prepare(void)
{
    static bool prepared;
    void *pending;
    int error;

    if (prepared)
        return;
    pending = culet_pages_grow(NULL, 0, PENDING * sizeof(*sampler.pending));
    if (pending == NULL)
        rb_raise(rb_eNoMemError, "not enough memory to sample objects");
    sampler.pending = pending;
    if ((error = culet_windows_prepare(trigger_job)) != 0)
        rb_syserr_fail(error, "pthread_atfork");
    hook = rb_tracepoint_new(Qnil, RUBY_INTERNAL_EVENT_NEWOBJ, at_allocation, NULL);
    if (!culet_job_prepare(&window_job))
        rb_raise(rb_eRuntimeError, "Ruby cannot register another postponed job");
    ruby_vm_at_exit(stop_at_exit);
    prepared = true;
}

/* Forgets what a former profile has found. */
static void reset(void)
{
    sampler.random = culet_windows_seed();
    sampler.bytes_per_window = sampler.windows = 0;
    sampler.allocated = sampler.estimated = sampler.seen = sampler.sampled = 0;
    sampler.allocated_at_close = culet_ruby_stat_now(CULET_RUBY_OBJECTS);
}

void culet_objects_start(void)
{
    int error;

    if (sampler.active)
        return;
    prepare();
    if ((error = culet_windows_start()) != 0)
        rb_syserr_fail(error, "cannot create a thread for the profile");
    reset();
    culet_liveness_start();
    culet_internal_slots_start();
    sampler.active = true;
    if (sampler.beside_ractors || has_ractors())
        give_up(BESIDE_RACTORS);
}

void culet_objects_stop(void)
{
    if (!sampler.active)
        return;
    count_allocated();
    sampler.active = false;
    culet_windows_stop();
    culet_liveness_stop();
    if (!culet_in_main_ractor()) {
        trigger_job();
        return;
    }
    if (sampler.enabled)
        close_window();
    culet_liveness_update();
}

/* ---- what Ruby offers ---- */

/* The size of all slots where Ruby does not tell that of one: those of Ruby 3.1 are equal. */
static size_t default_slot_bytes(void)
{
    VALUE constants = rb_const_get(rb_mGC, rb_intern("INTERNAL_CONSTANTS"));
    VALUE bytes = rb_hash_aref(constants, culet_symbol("RVALUE_SIZE"));

    if (!RB_INTEGER_TYPE_P(bytes))
        bytes = rb_hash_aref(constants, culet_symbol("BASE_SLOT_SIZE"));
    return RB_INTEGER_TYPE_P(bytes) ? NUM2SIZET(bytes) : 5 * sizeof(VALUE);
}

/* The thread of the windows must not request a job of a VM that is being torn down, and a job that is pending must not
 * start a Ruby thread: Ruby would wait for its end forever. Registered when the extension is loaded, so it runs after the
 * handler that writes the profile. */
static void at_end(VALUE unused)
{
    sampler.active = false;
    culet_windows_stop();
    culet_liveness_end();
    if (!sampler.enabled || !culet_in_main_ractor())
        return;
    rb_tracepoint_disable(hook);
    sampler.enabled = false;
    sampler.pending_count = 0;
}

void culet_init_profile_objects(void)
{
    static const char root;

    hook = Qnil;
    culet_init_profile_liveness();
    culet_object_bytes_prepare();
    slot_size = culet_heap_slot_size();
    base_slot_bytes = default_slot_bytes();
    rb_set_end_proc(at_end, Qnil);
    /* not NULL, or Ruby does not mark it */
    rb_gc_register_mark_object(TypedData_Wrap_Struct(rb_cObject, &roots_type, (void *)&root));
}
