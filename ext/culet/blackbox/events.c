#include "blackbox/events.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "blackbox/box.h"
#include "common/values.h"
#include "reading/reading.h"
#include "reading/ruby_stats.h"

#define SLOTS 128        /* of the table */
#define TAKEN UINT64_MAX /* in place of the number of an event that begins */

#define RUBY_NANOSECONDS UINT64_C(500000000) /* Ruby's counts are noted again for the next reading */

/* An event is its number and its slot. */
#define EVENT(number, slot) ((number)*SLOTS + (slot))
#define NUMBER(event) ((event) / SLOTS)
#define SLOT(event) ((event) % SLOTS)

static _Atomic uint64_t numbers[SLOTS]; /* of the event in each slot of `running`; 0: free */
static _Atomic uint64_t begun, ended;
static _Thread_local uint64_t thread; /* the kernel's number; 0: not asked */

static uint64_t thread_number(void)
{
    if (thread == 0)
        thread = (uint64_t)syscall(SYS_gettid);
    return thread;
}

/* The first one, so that few are looked at. Returns SLOTS if none is free. */
static uint64_t take_slot(void)
{
    for (uint64_t slot = 0; slot < SLOTS; slot++) {
        uint64_t none = 0;
        if (atomic_load(&numbers[slot]) == 0 && atomic_compare_exchange_strong(&numbers[slot], &none, TAKEN))
            return slot;
    }
    return SLOTS;
}

static size_t bytes_of(size_t label)
{
    return offsetof(struct culet_box_event, label) + label;
}

uint64_t culet_events_begin(const char *label, size_t length)
{
    uint64_t slot, number, now;
    struct culet_box_event event;

    if (!culet_box_mapped() || (slot = take_slot()) == SLOTS)
        return 0;
    now = culet_clock(CLOCK_REALTIME);
    culet_ruby_stats_note_after(RUBY_NANOSECONDS);
    number = atomic_fetch_add(&begun, 1) + 1;
    event = (struct culet_box_event){.started = now,
                                     .thread = thread_number(),
                                     .resident_before = culet_last_resident_bytes(),
                                     .resident_after = CULET_UNKNOWN,
                                     .objects_before = culet_ruby_stat_now(CULET_RUBY_OBJECTS),
                                     .objects_after = CULET_UNKNOWN};
    length = culet_fitting_bytes(label, length, CULET_BOX_LABEL);
    memcpy(event.label, label, length);
    atomic_store(&numbers[slot], number);
    culet_box_write(CULET_BOX_RUNNING, culet_box_slot(CULET_BOX_RUNNING, slot), number, now, &event, bytes_of(length));
    return EVENT(number, slot);
}

static bool is_own(uint64_t event)
{
    return event != 0 && atomic_load(&numbers[SLOT(event)]) == NUMBER(event);
}

void culet_events_rename(uint64_t event, const char *label, size_t length)
{
    char *slot = is_own(event) ? culet_box_slot(CULET_BOX_RUNNING, SLOT(event)) : NULL;

    if (slot != NULL)
        culet_box_write(CULET_BOX_RUNNING, slot + CULET_BOX_RELABEL, NUMBER(event), culet_clock(CLOCK_REALTIME), label,
                        culet_fitting_bytes(label, length, CULET_BOX_LABEL));
}

/* The event as its slot has it, with its latest label. Returns the length of the label. */
static size_t read_slot(const char *slot, uint64_t number, struct culet_box_event *event)
{
    struct culet_box_record first, second;
    size_t length;

    memcpy(&first, slot, sizeof(first));
    memcpy(&second, slot + CULET_BOX_RELABEL, sizeof(second));
    length = first.length > bytes_of(0) ? first.length - bytes_of(0) : 0;
    length = length < CULET_BOX_LABEL ? length : CULET_BOX_LABEL;
    memcpy(event, slot + sizeof(first), bytes_of(length));
    if (second.number != number)
        return length;
    length = second.length < CULET_BOX_LABEL ? second.length : CULET_BOX_LABEL;
    memcpy(event->label, slot + CULET_BOX_RELABEL + sizeof(second), length);
    return length;
}

static void finish(char *slot, uint64_t number)
{
    struct culet_box_event event;
    size_t length = read_slot(slot, number, &event);
    uint64_t now = culet_clock(CLOCK_REALTIME);

    event.ended = now;
    event.resident_after = culet_last_resident_bytes();
    event.objects_after = culet_ruby_stat_now(CULET_RUBY_OBJECTS);
    culet_ruby_stats_note_after(RUBY_NANOSECONDS);
    culet_box_write(CULET_BOX_FINISHED, culet_box_slot(CULET_BOX_FINISHED, atomic_fetch_add(&ended, 1)), number, now,
                    &event, bytes_of(length));
    culet_box_clear(slot);
}

void culet_events_end(uint64_t event)
{
    char *slot;

    if (!is_own(event))
        return;
    slot = culet_box_slot(CULET_BOX_RUNNING, SLOT(event));
    if (slot != NULL)
        finish(slot, NUMBER(event));
    atomic_store(&numbers[SLOT(event)], 0);
}

void culet_events_count(uint64_t *running, uint64_t *all)
{
    *running = 0;
    for (size_t i = 0; i < SLOTS; i++)
        *running += atomic_load(&numbers[i]) != 0;
    *all = atomic_load(&begun);
}

/* The forking thread goes on, and may end the events that its parent began: their numbers stay unknown. */
void culet_events_reset(void)
{
    thread = 0;
    for (size_t i = 0; i < SLOTS; i++)
        atomic_store(&numbers[i], 0);
}
