#define _GNU_SOURCE
#include "timeline.h"

#include "mapping.h"

#include <err.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GENERATIONS 32 /* of forks */

/* ---- the trace, its parent, the parent of that and so on ---- */

struct lineage {
    struct culet_trace_file traces[GENERATIONS];
    uint32_t programs[GENERATIONS]; /* which of the programs of each process */
    char paths[GENERATIONS][PATH_MAX];
    size_t count;
    bool parent_missing;
};

static bool parent_path(const struct culet_trace_file *trace, char *path)
{
    const char *slash = strrchr(trace->path, '/');
    int directory = slash ? (int)(slash + 1 - trace->path) : 0;
    struct stat status;
    int bytes = snprintf(path, PATH_MAX, "%.*s%.*s", directory, trace->path, (int)sizeof trace->header->parent,
                         trace->header->parent);

    /* The name comes from the file: nothing outside its directory is opened, and no link, pipe or device. */
    return bytes > 0 && bytes < PATH_MAX &&
           !memchr(trace->header->parent, '/', strnlen(trace->header->parent, sizeof trace->header->parent)) &&
           lstat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, R_OK) == 0;
}

/* Where the program of the process was forked; 0: it was executed, so it has no memory of another. */
static uint64_t forked_at(const struct culet_trace_file *trace, uint32_t program)
{
    return program ? 0 : trace->header->forked_at;
}

/* Parent and child have the same start time; a file of that name from another recording does not. */
static bool is_parent(const struct culet_trace_file *parent, const struct culet_trace_file *child)
{
    return parent->header->monotonic_ns == child->header->monotonic_ns &&
           forked_at(parent, child->header->parent_execs) < child->header->forked_at;
}

/* Opens the trace of the parent. False: it is missing. */
static bool open_parent(struct lineage *lineage)
{
    size_t count = lineage->count;
    const struct culet_trace_file *child = &lineage->traces[count - 1];

    if (count == GENERATIONS || !parent_path(child, lineage->paths[count]))
        return false;
    lineage->traces[count] = culet_trace_file_open(lineage->paths[count]);
    lineage->programs[count] = child->header->parent_execs;
    lineage->count += is_parent(&lineage->traces[count], child);
    return lineage->count > count;
}

static uint64_t oldest_forked_at(const struct lineage *lineage)
{
    return forked_at(&lineage->traces[lineage->count - 1], lineage->programs[lineage->count - 1]);
}

static void open_lineage(struct lineage *lineage, const char *path)
{
    lineage->traces[0] = culet_trace_file_open(path);
    lineage->programs[0] = lineage->traces[0].header->execs;
    lineage->count = 1;
    while (oldest_forked_at(lineage) && !lineage->parent_missing)
        lineage->parent_missing = !open_parent(lineage);
}

/* ---- steps ---- */

struct reader {
    struct culet_timeline *timeline;
    uint64_t first; /* number of steps[0] */
    uint64_t limit; /* the child's fork: later events of a parent do not count */
    uint64_t events, last;
    const struct culet_trace_file *trace;
};

static uint64_t last_number(const struct culet_trace_event *event)
{
    return event->kind == CULET_EVENT_REALLOC ? event->end_sequence : event->sequence;
}

static void count_event(void *context, const struct culet_trace_event *event)
{
    struct reader *reader = context;

    if (last_number(event) >= reader->limit)
        return;
    reader->events++;
    if (last_number(event) > reader->last)
        reader->last = last_number(event);
}

static _Noreturn void fail_unordered(const struct reader *reader)
{
    errx(1, "%s is damaged: its sequence numbers are invalid; copy it again or record again", reader->trace->path);
}

static struct culet_step *step_of(const struct reader *reader, uint64_t sequence)
{
    const struct culet_timeline *timeline = reader->timeline;

    if (sequence < reader->first || sequence - reader->first >= timeline->count ||
        timeline->steps[sequence - reader->first].kind)
        fail_unordered(reader);
    return &timeline->steps[sequence - reader->first];
}

static void put_realloc(struct reader *reader, const struct culet_trace_event *event)
{
    bool failed = !event->allocated && event->bytes;
    struct culet_step *begin = step_of(reader, event->sequence);

    *begin = (struct culet_step){.kind = CULET_EVENT_REALLOC, .address = event->freed};
    struct culet_step *end = step_of(reader, event->end_sequence);
    begin->bytes = event->end_sequence - reader->first;
    *end = (struct culet_step){.kind = failed ? CULET_STEP_REALLOC_FAILED : CULET_STEP_REALLOC_END,
                               .address = failed ? event->freed : event->allocated,
                               .bytes = event->bytes,
                               .thread = event->thread,
                               .microseconds = event->microseconds};
}

static void put_event(void *context, const struct culet_trace_event *event)
{
    struct reader *reader = context;

    /* Later than all counted events: recorded since the first pass. */
    if (last_number(event) >= reader->limit || last_number(event) > reader->last)
        return;
    if (event->kind == CULET_EVENT_REALLOC) {
        put_realloc(reader, event);
        return;
    }
    *step_of(reader, event->sequence) =
        (struct culet_step){.kind = event->kind,
                            .bytes = event->bytes,
                            .shift = event->shift,
                            .thread = event->thread,
                            .address = event->kind == CULET_EVENT_FREE ? event->freed : event->allocated,
                            .microseconds = event->microseconds};
}

static void read_events(struct reader *reader, const struct lineage *lineage,
                        void (*visit)(void *, const struct culet_trace_event *))
{
    for (size_t i = lineage->count; i-- > 0;) {
        reader->trace = &lineage->traces[i];
        reader->limit = i ? lineage->traces[i - 1].header->forked_at : UINT64_MAX;
        culet_trace_file_each(reader->trace, lineage->programs[i], visit, reader);
    }
}

struct culet_timeline culet_timeline_read(const char *path)
{
    static struct lineage lineage;
    struct culet_timeline timeline = {0};

    open_lineage(&lineage, path);
    uint64_t first = oldest_forked_at(&lineage);
    struct reader reader = {.timeline = &timeline, .first = first ? first : 1};
    timeline.parent_missing = lineage.parent_missing;
    if (lineage.count > 1)
        timeline.own = lineage.traces[0].header->forked_at - reader.first;

    read_events(&reader, &lineage, count_event);
    if (!reader.events)
        return timeline;
    /* A process that is killed between taking a number and recording the event leaves a gap: a few at most. */
    if (reader.last < reader.first || reader.last - reader.first > 2 * reader.events + (1u << 20))
        fail_unordered(&reader);
    timeline.count = reader.last - reader.first + 1;
    timeline.steps = culet_mapping_new(timeline.count, sizeof *timeline.steps);
    read_events(&reader, &lineage, put_event);
    return timeline;
}

void culet_timeline_free(struct culet_timeline *timeline)
{
    if (timeline->steps)
        culet_mapping_free(timeline->steps, timeline->count, sizeof *timeline->steps);
    *timeline = (struct culet_timeline){0};
}
