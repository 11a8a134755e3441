#include "profile/liveness.h"

#include <ruby/thread.h>

#include "common/pages.h"
#include "common/sleeper.h"
#include "common/values.h"
#include "profile/active_profile.h"
#include "profile/windows.h"
#include "reading/clock.h"
#include "reading/ruby_stats.h"

#define ADDED 1024        /* samples that are not yet in the map; beyond, none are taken */
#define CHECK_SHARE 2000  /* a check of all samples may take this part of the time */
#define CHECK_SECONDS 1.0 /* and comes no sooner than that after the one before */
#define WAIT_NANOSECONDS 500000
#define STACK_CLEARED 4096 /* more than Ruby takes to sleep */

struct added {
    VALUE object;
    uint32_t sample;
};

/* Methods of the map may switch threads, so the writer of the profile and the thread may be in the same function. Each
 * change below is between two such methods. */
static struct {
    bool active, ended;
    uint32_t *samples; /* whose objects may live */
    size_t count, mapped_bytes;
    size_t removals;           /* changes other than of a new sample at the end */
    struct added added[ADDED]; /* the last of `samples`; their objects are marked */
    size_t added_count;
    uint64_t collections; /* by the last check; CULET_UNKNOWN: Ruby does not count them */
    double checked;
    double check_seconds; /* of the last one */
} liveness;

static VALUE thread;   /* Qnil: none was started */
static VALUE weak_map; /* object => number of its sample */
static VALUE weak_map_class;
static ID id_store, id_each_value;

/* ---- GC roots ---- */

static void mark(void *unused)
{
    rb_gc_mark(thread);
    rb_gc_mark(weak_map);
    for (size_t i = 0; i < liveness.added_count; i++)
        rb_gc_mark(liveness.added[i].object);
}

static const rb_data_type_t roots_type = {.wrap_struct_name = "culet/profile_liveness", .function = {.dmark = mark}};

/* ---- new samples ---- */

bool culet_liveness_has_room(void)
{
    size_t wanted = (liveness.count + 1) * sizeof(uint32_t);
    void *samples;

    if (liveness.added_count == ADDED)
        return false;
    samples = culet_pages_reserve(liveness.samples, &liveness.mapped_bytes, wanted);
    if (samples != NULL)
        liveness.samples = samples;
    return samples != NULL;
}

void culet_liveness_add(VALUE object, uint32_t sample)
{
    liveness.samples[liveness.count++] = sample;
    liveness.added[liveness.added_count++] = (struct added){object, sample};
}

/* The other thread may have removed it. */
static void remove_added(const struct added *entry)
{
    size_t i = liveness.added_count;

    while (i > 0 && (liveness.added[i - 1].object != entry->object || liveness.added[i - 1].sample != entry->sample))
        i--;
    if (i > 0)
        liveness.added[i - 1] = liveness.added[--liveness.added_count];
}

/* A sample is marked until it is in the map. */
static __attribute__((noinline)) void store_added(void)
{
    while (liveness.added_count > 0) {
        struct added entry = liveness.added[liveness.added_count - 1];
        VALUE pair[2] = {entry.object, ULONG2NUM(entry.sample)};
        rb_funcallv(weak_map, id_store, 2, pair);
        remove_added(&entry);
        RB_GC_GUARD(entry.object);
    }
}

/* ---- the check ---- */

struct check {
    unsigned char *live; /* a bit for each number of a sample */
    size_t bytes;
    size_t count, removals; /* of the samples when it started */
};

static void set_live(struct check *check, size_t sample)
{
    if (sample / 8 < check->bytes)
        check->live[sample / 8] |= (unsigned char)(1 << sample % 8);
}

static VALUE mark_live(RB_BLOCK_CALL_FUNC_ARGLIST(sample, check))
{
    set_live((struct check *)check, FIX2ULONG(sample));
    return Qnil;
}

/* Those that came after the start of the check stay. */
static void remove_dead(struct check *check)
{
    size_t kept = 0;

    for (size_t i = 0; i < liveness.added_count; i++)
        set_live(check, liveness.added[i].sample);
    for (size_t i = 0; i < liveness.count; i++) {
        uint32_t sample = liveness.samples[i];
        if (i >= check->count || (check->live[sample / 8] >> sample % 8 & 1) != 0)
            liveness.samples[kept++] = sample;
        else
            culet_active_profile->remove(sample);
    }
    liveness.count = kept;
    liveness.removals++;
}

/* What another thread removed meanwhile may be new samples by now, with the same numbers. */
static VALUE check_live(VALUE data)
{
    struct check *check = (struct check *)data;

    rb_block_call(weak_map, id_each_value, 0, NULL, mark_live, data);
    if (liveness.removals == check->removals)
        remove_dead(check);
    return Qnil;
}

static VALUE free_check(VALUE data)
{
    struct check *check = (struct check *)data;

    munmap(check->live, check->bytes);
    return Qnil;
}

static void check_samples(void)
{
    struct check check = {.count = liveness.count, .removals = liveness.removals};
    uint32_t highest = 0;

    for (size_t i = 0; i < liveness.count; i++)
        highest = liveness.samples[i] > highest ? liveness.samples[i] : highest;
    check.bytes = highest / 8 + 1;
    check.live = culet_pages_grow(NULL, 0, check.bytes);
    if (check.live == NULL)
        return; /* the next check removes them */
    rb_ensure(check_live, (VALUE)&check, free_check, (VALUE)&check);
}

void culet_liveness_check(void)
{
    if (liveness.count == 0)
        return;
    store_added();
    liveness.checked = culet_clock_seconds(CLOCK_MONOTONIC);
    liveness.collections = culet_ruby_stat_now(CULET_RUBY_COLLECTIONS);
    check_samples();
    liveness.check_seconds = culet_seconds_since(liveness.checked);
}

/* After a collection, objects may be gone. */
static bool check_is_due(void)
{
    double since = culet_seconds_since(liveness.checked);

    return liveness.count > 0 && since > CHECK_SECONDS && since > liveness.check_seconds * CHECK_SHARE &&
           (liveness.collections == CULET_UNKNOWN ||
            culet_ruby_stat_now(CULET_RUBY_COLLECTIONS) != liveness.collections);
}

/* ---- addresses ---- */

struct addresses {
    VALUE *list; /* by number of a sample */
    size_t count;
};

static void set_address(const struct addresses *addresses, size_t sample, VALUE object)
{
    if (sample < addresses->count)
        addresses->list[sample] = object;
}

static VALUE note_address(RB_BLOCK_CALL_FUNC_ARGLIST(object, addresses))
{
    if (argc == 2)
        set_address((const struct addresses *)addresses, FIX2ULONG(argv[1]), object);
    return Qnil;
}

void culet_liveness_addresses(VALUE *list, size_t count)
{
    struct addresses addresses = {list, count};

    if (liveness.count == 0)
        return;
    rb_block_call(weak_map, rb_intern("each_pair"), 0, NULL, note_address, (VALUE)&addresses);
    for (size_t i = 0; i < liveness.added_count; i++)
        set_address(&addresses, liveness.added[i].sample, liveness.added[i].object);
}

/* ---- the thread ---- */

/* Wakes the threads that wait for this thread to be idle. */
static struct culet_sleeper waiting;

/* It belongs to the program's default group, whichever thread created it. Puma reports threads that a fork will end,
 * unless they have the variable `fork_safe`. */
static void set_up_thread(void)
{
    VALUE group = rb_const_get(rb_const_get(rb_cObject, rb_intern("ThreadGroup")), rb_intern("Default"));
    VALUE current = rb_thread_current();

    rb_funcall(current, rb_intern("name="), 1, rb_str_new_cstr("culet-objects"));
    rb_funcall(current, rb_intern("thread_variable_set"), 2, culet_symbol("fork_safe"), Qtrue);
    if (!RTEST(rb_funcall(group, rb_intern("enclosed?"), 0)))
        rb_funcall(group, rb_intern("add"), 1, current);
}

static void end_round(void)
{
    static uint64_t counted;
    uint64_t used = culet_clock(CLOCK_THREAD_CPUTIME_ID);

    culet_windows_cost(used > counted ? used - counted : used); /* another thread's clock starts at 0 */
    counted = used;
    culet_sleeper_wake(&waiting);
}

/* What earlier calls left on the stack would keep objects alive while the thread sleeps. */
static __attribute__((noinline)) void clear_stack(void)
{
    volatile char unused[STACK_CLEARED];

    for (size_t i = 0; i < sizeof(unused); i++)
        unused[i] = 0;
}

/* It sleeps as a thread that waits for others, so Ruby still finds a deadlock of the program's threads. */
static VALUE follow(RB_BLOCK_CALL_FUNC_ARGLIST(unused, data))
{
    while (liveness.active || liveness.added_count > 0) {
        store_added();
        if (check_is_due())
            culet_liveness_check();
        clear_stack();
        end_round();
        if (liveness.active && liveness.added_count == 0)
            rb_thread_sleep_deadly();
    }
    return Qnil;
}

/* A thread inherits what Thread.handle_interrupt defers where it is created. Ruby's end waits for a thread that defers
 * everything. */
static VALUE run_thread(void *unused)
{
    VALUE immediate = rb_hash_new();

    set_up_thread();
    rb_hash_aset(immediate, rb_cObject, culet_symbol("immediate"));
    return rb_block_call(rb_cThread, rb_intern("handle_interrupt"), 1, &immediate, follow, Qnil);
}

/* A thread that the program has killed, or a fork, is replaced. */
static void wake_thread(void)
{
    if (NIL_P(thread) || NIL_P(rb_thread_wakeup_alive(thread)))
        thread = rb_thread_create(run_thread, NULL);
}

static void *wait_for_round(void *before)
{
    culet_sleeper_sleep(&waiting, *(uint32_t *)before, WAIT_NANOSECONDS);
    return NULL;
}

/* Lets the thread have the GVL at once: until it has run, the objects cannot be collected. Unlike other functions that
 * give the GVL away, this one does not check for interrupts. */
void culet_liveness_update(void)
{
    uint32_t before = atomic_load(&waiting.wakeups);

    if (liveness.ended || (liveness.active && liveness.added_count == 0 && !check_is_due()))
        return;
    wake_thread();
    if (liveness.added_count > 0 && thread != rb_thread_current())
        (void)rb_nogvl(wait_for_round, &before, NULL, NULL, RB_NOGVL_INTR_FAIL);
}

void culet_liveness_start(void)
{
    weak_map = rb_class_new_instance(0, NULL, weak_map_class);
    liveness.count = liveness.added_count = 0;
    liveness.removals++;
    liveness.checked = culet_clock_seconds(CLOCK_MONOTONIC);
    liveness.active = true;
}

void culet_liveness_stop(void)
{
    liveness.active = false;
}

void culet_liveness_end(void)
{
    liveness.active = false;
    liveness.ended = true;
}

void culet_init_profile_liveness(void)
{
    static const char root;

    thread = weak_map = Qnil;
    weak_map_class = rb_const_get(rb_const_get(rb_cObject, rb_intern("ObjectSpace")), rb_intern("WeakMap"));
    rb_gc_register_mark_object(weak_map_class);
    id_store = rb_intern("[]=");
    id_each_value = rb_intern("each_value");
    /* not NULL, or Ruby does not mark it */
    rb_gc_register_mark_object(TypedData_Wrap_Struct(rb_cObject, &roots_type, (void *)&root));
}
