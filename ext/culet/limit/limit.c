/* The native part of culet/limit, private methods of Culet::Limit:
 *
 *   watch(limit, kind, usage, stat, wakeup)          starts the thread, or changes its settings
 *   unwatch                                          ends the thread
 *   counts                                           a Hash: what was read and done since the start
 *   used                                             the bytes in use at this moment, or nil
 *   anonymous                                        this process's anonymous resident bytes, or nil
 *   workers(pids, forks)                             the workers that the limit is for too; forks: before the list was made
 *   note_fork, forks                                 to be called before and after each fork; the number of these calls
 *   ending_process = pid, ending                     the process that a restart ends, for those forked from this one
 *   claim(milliseconds)                              whether no process has claimed for so long; then this one has
 *   full?(bytes)                                     whether as many bytes are in use
 *   event_descriptor                                 a new eventfd
 *
 * and Culet::Limit::Backoff, the rule of limit/backoff.h for steps in Ruby. Its sizes are shares of the limit. */
#include "limit/limit.h"

#include <errno.h>
#include <ruby/vm.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/job.h"
#include "common/values.h"
#include "limit/collector.h"
#include "limit/ticker.h"
#include "reading/clock.h"
#include "reading/process.h"
#include "trim/gc_watch.h"

/* In a Ruby thread, soon after a collection. */
static void job(void *unused)
{
    culet_collector_steer();
}

static struct culet_job steer_job = {.function = job};

/* May be called during GC. If Ruby's queue is full, the next collection requests the job again. */
static void request_job(void)
{
    culet_job_trigger(&steer_job);
}

/* During GC. */
static void on_collection(int major)
{
    if (culet_collector_requests())
        request_job();
}

/* Shared with the processes forked later. */
struct shared {
    _Atomic uint64_t used; /* the bytes in use of a cluster, as its parent's thread reads them */
    _Atomic uint64_t ending;
    _Atomic uint64_t claimed; /* milliseconds of CLOCK_MONOTONIC; 0: never */
};
static struct shared *shared;

static struct shared *shared_page(void)
{
    if (shared == NULL) {
        void *page = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
            rb_sys_fail("mmap");
        shared = page;
    }
    return shared;
}

static VALUE number_or_nil(uint64_t bytes)
{
    return bytes == CULET_UNKNOWN ? Qnil : ULL2NUM(bytes);
}

static VALUE limit_used(VALUE self)
{
    return number_or_nil(culet_limit_used());
}

static VALUE limit_anonymous(VALUE self)
{
    return number_or_nil(culet_anonymous_bytes());
}

static VALUE limit_workers(VALUE self, VALUE pids, VALUE forks)
{
    VALUE buffer;
    pid_t *list;
    long count;
    int error;

    Check_Type(pids, T_ARRAY);
    count = RARRAY_LEN(pids);
    list = ALLOCV_N(pid_t, buffer, count + 1);
    for (long i = 0; i < count; i++)
        list[i] = NUM2INT(rb_ary_entry(pids, i));
    error = culet_limit_list(list, (unsigned)count, NUM2UINT(forks));
    ALLOCV_END(buffer);
    if (error != 0)
        rb_syserr_fail(error, "workers");
    return Qnil;
}

static VALUE limit_note_fork(VALUE self)
{
    culet_cluster_fork(&culet_limit_state.cluster);
    return Qnil;
}

static VALUE limit_forks(VALUE self)
{
    return UINT2NUM(atomic_load(&culet_limit_state.cluster.forks));
}

static VALUE limit_set_ending(VALUE self, VALUE pid)
{
    atomic_store(&shared_page()->ending, NUM2ULL(pid));
    return pid;
}

/* Culet::Limit.ending: 0 before the first. */
static VALUE limit_ending(VALUE self)
{
    return ULL2NUM(atomic_load(&shared_page()->ending));
}

/* For restarts that every process decides about itself: one in a while. */
static VALUE limit_claim(VALUE self, VALUE milliseconds)
{
    uint64_t last = atomic_load(&shared_page()->claimed), now = (uint64_t)culet_clock_milliseconds();

    if (last != 0 && now < last + NUM2ULL(milliseconds))
        return Qfalse;
    return atomic_compare_exchange_strong(&shared_page()->claimed, &last, now) ? Qtrue : Qfalse;
}

static VALUE limit_full(VALUE self, VALUE bytes)
{
    return culet_limit_full(NUM2ULL(bytes)) ? Qtrue : Qfalse;
}

static enum culet_usage_kind usage_kind(VALUE kind)
{
    if (kind == culet_symbol("group"))
        return CULET_USAGE_GROUP;
    if (kind == culet_symbol("space"))
        return CULET_USAGE_SPACE;
    return kind == culet_symbol("reported") ? CULET_USAGE_REPORTED : CULET_USAGE_PSS;
}

static struct culet_kernel_file file_of(VALUE descriptor)
{
    return (struct culet_kernel_file){.descriptor = NIL_P(descriptor) ? -1 : NUM2INT(descriptor)};
}

static void stop_at_exit(ruby_vm_t *vm)
{
    culet_limit_ticker_stop();
}

/* Culet::Limit.watch(limit, kind, usage, stat, wakeup): kind :group, :pss, :space or :reported; usage and stat are
 * descriptors or nil, wakeup one. Returns nil, or why there is no thread. */
static VALUE limit_watch(VALUE self, VALUE limit, VALUE kind, VALUE usage, VALUE stat, VALUE wakeup)
{
    static int watching;
    struct culet_limit_settings settings = {.limit = NUM2ULL(limit), .wakeup_fd = NUM2INT(wakeup)};
    int error;

    settings.usage =
        (struct culet_usage){.kind = usage_kind(kind), .group = {.charged = file_of(usage), .stat = file_of(stat)}};
    settings.usage.reported = &shared_page()->used;
    if (!watching) {
        watching = 1;
        if (!culet_job_prepare(&steer_job))
            return rb_utf8_str_new_cstr("Ruby cannot register another postponed job");
        culet_collector_prepare(request_job);
        ruby_vm_at_exit(stop_at_exit);
        culet_gc_watch(on_collection);
    }
    if ((error = culet_limit_ticker_start(&settings)) != 0)
        return rb_utf8_str_new_cstr(strerror(error));
    culet_collector_steer();
    return Qnil;
}

static VALUE limit_unwatch(VALUE self)
{
    culet_limit_ticker_stop();
    return Qnil;
}

static VALUE limit_counts(VALUE self)
{
    const struct culet_limit_state *state = &culet_limit_state;
    struct culet_collector_counts collector = culet_collector_counts();
    VALUE hash = rb_hash_new();

    culet_hash_set_number(hash, "used_bytes", atomic_load(&state->used));
    culet_hash_set_number(hash, "trims", atomic_load(&state->trims));
    culet_hash_set_number(hash, "trimmed_bytes", atomic_load(&state->trimmed_bytes));
    culet_hash_set_number(hash, "collections", atomic_load(&state->collections));
    culet_hash_set_number(hash, "collected_bytes", atomic_load(&state->freed_bytes));
    culet_hash_set_number(hash, "tightened", collector.tightened);
    culet_hash_set_number(hash, "budget_bytes", collector.budget);
    culet_hash_set_number(hash, "readings", atomic_load(&state->readings));
    return hash;
}

/* Culet::Limit.event_descriptor: a new eventfd(2). */
static VALUE limit_event_descriptor(VALUE self)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        rb_sys_fail("eventfd");
    return INT2NUM(fd);
}

/* ---- Culet::Limit::Backoff ---- */

#define WHOLE_LIMIT 1000000000000.0 /* shares are counted in parts of it */

static const rb_data_type_t backoff_type = {
    .wrap_struct_name = "culet_backoff",
    .function = {.dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE backoff_allocate(VALUE class)
{
    struct culet_backoff *backoff;

    return TypedData_Make_Struct(class, struct culet_backoff, &backoff_type, backoff);
}

static uint64_t share_of(VALUE share)
{
    double parts = NUM2DBL(share) * WHOLE_LIMIT;

    return parts > 0 ? (uint64_t)parts : 0;
}

/* backoff.due?(time, used): whether the step may be taken. time: seconds; used: the share in use now. */
static VALUE backoff_due(VALUE self, VALUE time, VALUE used)
{
    struct culet_backoff *backoff = rb_check_typeddata(self, &backoff_type);

    return culet_backoff_due(backoff, NUM2DBL(time), share_of(used), (uint64_t)WHOLE_LIMIT) ? Qtrue : Qfalse;
}

/* backoff.note(ended, pause, freed, used), after a step: as of culet_backoff_note. */
static VALUE backoff_note(VALUE self, VALUE ended, VALUE pause, VALUE freed, VALUE used)
{
    struct culet_backoff *backoff = rb_check_typeddata(self, &backoff_type);

    culet_backoff_note(backoff, NUM2DBL(ended), NUM2DBL(pause), share_of(freed), share_of(used), (uint64_t)WHOLE_LIMIT);
    return Qnil;
}

static void define_backoff(VALUE limit)
{
    VALUE backoff = rb_define_class_under(limit, "Backoff", rb_cObject);

    rb_define_alloc_func(backoff, backoff_allocate);
    rb_define_method(backoff, "due?", backoff_due, 2);
    rb_define_method(backoff, "note", backoff_note, 4);
    rb_define_const(backoff, "FUTILE", rb_float_new(CULET_BACKOFF_FUTILE / 100.0));
}

/* ---- */

static VALUE limit_module;

void culet_limit_answer(struct culet_buffer *buffer)
{
    VALUE status = rb_check_funcall(limit_module, rb_intern("status"), 0, NULL);

    culet_buffer_json(buffer, status == Qundef ? rb_hash_new() : status);
}

void culet_init_limit(VALUE culet)
{
    VALUE methods;

    limit_module = rb_define_module_under(culet, "Limit");
    define_backoff(limit_module);
    methods = rb_singleton_class(limit_module);

    rb_define_private_method(methods, "watch", limit_watch, 5);
    rb_define_private_method(methods, "unwatch", limit_unwatch, 0);
    rb_define_private_method(methods, "counts", limit_counts, 0);
    rb_define_private_method(methods, "used", limit_used, 0);
    rb_define_private_method(methods, "anonymous", limit_anonymous, 0);
    rb_define_private_method(methods, "workers", limit_workers, 2);
    rb_define_private_method(methods, "note_fork", limit_note_fork, 0);
    rb_define_private_method(methods, "forks", limit_forks, 0);
    rb_define_private_method(methods, "ending_process=", limit_set_ending, 1);
    rb_define_private_method(methods, "ending", limit_ending, 0);
    rb_define_private_method(methods, "claim", limit_claim, 1);
    rb_define_private_method(methods, "full?", limit_full, 1);
    rb_define_private_method(methods, "event_descriptor", limit_event_descriptor, 0);
}
