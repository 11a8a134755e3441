#include "agent/process_reading.h"

#include "common/job.h"
#include "limit/state.h"
#include "profile/active_profile.h"
#include "reading/ruby_stats.h"
#include "trim/gc_watch.h"
#include "trim/trimmer.h"

static const struct culet_pace malloc_pace = {CULET_REST_PER_COST, 0};
static struct culet_reader reader; /* of the listener's thread */

static void note(void *unused)
{
    culet_ruby_stats_note();
}

/* Noting at each collection makes the first answer no older than the last collection. */
static void note_collection(int major)
{
    culet_ruby_stats_note();
}

static struct culet_job job = {.function = note};
static bool has_job;

size_t culet_process_reading_write(char *text)
{
    struct culet_reading *reading = &reader.reading;

    culet_reader_ruby(&reader);
    culet_reader_malloc(&reader, malloc_pace);
    reading->trims = culet_trimmer_totals(&reading->trim_returned);
    reading->profile = (uint64_t)culet_active_profile->running();
    reading->limit = (uint64_t)culet_limit_watched();
    /* clients take two equal answers for no change */
    reading->ruby_time = reading->malloc_time = CULET_UNKNOWN;
    reading->malloc_increase = reading->oldmalloc_increase = CULET_UNKNOWN;
    return culet_reading_json(reading, text);
}

void culet_process_reading_refresh(void)
{
    if (has_job)
        culet_job_trigger(&job);
}

void culet_process_reading_reset(void)
{
    culet_reader_reset(&reader);
}

void culet_process_reading_prepare(void)
{
    culet_reader_reset(&reader);
    culet_reading_prepare();
    has_job = culet_job_prepare(&job);
    culet_gc_watch(note_collection);
}
