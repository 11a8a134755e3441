/* A look is due when a further level of the limit is passed, and then every ten minutes; not while the process is small
 * against its limit. It is taken where twice the memory is left that the copy may need: its arrays, and the pages that the
 * program writes meanwhile.
 *
 * The thread of the readings knows no Ruby: a job forks the copy in a Ruby thread. */
#include "blackbox/holders.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "agent/copy.h"
#include "agent/listener.h"
#include "blackbox/box.h"
#include "common/io.h"
#include "common/job.h"
#include "common/vm_lock.h"
#include "reading/clock.h"
#include "retain/retain.h"

#define LIMIT_SECONDS 30
#define TOP_SECONDS 600     /* between two looks beyond the last level, at least */
#define BYTES_PER_OBJECT 32 /* of the copy's arrays */
#define BASE_BYTES (UINT64_C(8) << 20)
#define WRITTEN_PART 50 /* one page of so many is written while a copy runs */

static const double levels[] = {0.5, 0.65, 0.8, 0.9, 0.95};
#define LEVELS (sizeof(levels) / sizeof(*levels))

enum state { IDLE, WANTED, COPYING };

static struct {
    _Atomic int state;
    uint64_t distance;                   /* nanoseconds between two looks; 0: none */
    struct culet_retain_options options; /* of the wanted one */
    struct culet_copy copy;              /* while COPYING */
} looks;

/* Of the thread of the readings. */
static struct {
    size_t level;      /* the next one */
    uint64_t asked_at; /* CLOCK_MONOTONIC; 0: never */
    uint64_t number;   /* of the last record */
    char status[16];
    size_t status_bytes;
    struct culet_brief earlier;
} own;

static void job(void *unused);
static struct culet_job look_job = {.function = job};

/* ---- the copy ---- */

static const char *make(const struct culet_copy_task *task, const long *pids, double fork_seconds, int output)
{
    static struct culet_brief found;
    const char *problem;

    problem = culet_retain_brief(task->request, &own.earlier, &found);
    if (problem == NULL && culet_write_all(output, &found, sizeof(found)) != 0)
        problem = "no memory is left for the answer";
    return problem;
}

/* Looks are for the main Ractor: beside others a copy would have to stop them. */
static void job(void *unused)
{
    const struct culet_copy_task task = {
        .name = "culet-look", .limit_seconds = LIMIT_SECONDS, .make = make, .request = &looks.options};
    const char *problem = "several Ractors run";

    if (atomic_load(&looks.state) != WANTED)
        return;
    if (!culet_vm_several_ractors()) {
        culet_listener_no_child(1);
        problem = culet_copy_start(&looks.copy, &task);
        culet_listener_no_child(0);
    }
    atomic_store(&looks.state, problem == NULL ? COPYING : IDLE);
}

/* ---- the thread of the readings ---- */

static void write_look(void)
{
    static struct culet_brief found;

    if (pread(looks.copy.output, &found, sizeof(found), 0) != (ssize_t)sizeof(found))
        return;
    own.earlier = found;
    own.number++;
    culet_box_write(CULET_BOX_HOLDERS, culet_box_slot(CULET_BOX_HOLDERS, own.number), own.number,
                    culet_clock(CLOCK_REALTIME), found.text, found.length);
}

/* Its pipe has the copy's number, then a byte. */
static void end_look(void)
{
    ssize_t count;

    while ((count = read(looks.copy.status, own.status + own.status_bytes, sizeof(own.status) - own.status_bytes)) > 0)
        own.status_bytes += (size_t)count;
    if (count < 0)
        return;
    if (own.status_bytes == sizeof(pid_t) + 1 && own.status[sizeof(pid_t)] == CULET_COPY_ANSWER)
        write_look();
    culet_copy_close(&looks.copy);
    own.status_bytes = 0;
    atomic_store(&looks.state, IDLE);
}

static bool is_due(double share, uint64_t now)
{
    uint64_t distance = own.level < LEVELS ? looks.distance : TOP_SECONDS * CULET_SECOND;

    distance = distance > looks.distance ? distance : looks.distance;
    return share >= levels[own.level < LEVELS ? own.level : 0] && (own.asked_at == 0 || now >= own.asked_at + distance);
}

static void ask(uint64_t used, uint64_t limit, const struct culet_reading *reading)
{
    uint64_t now = culet_clock(CLOCK_MONOTONIC);
    uint64_t needed = BASE_BYTES + reading->live_slots * BYTES_PER_OBJECT + reading->resident / WRITTEN_PART;
    double share = (double)used / (double)limit;

    if (!is_due(share, now) || limit - used < 2 * needed)
        return;
    while (own.level < LEVELS && share >= levels[own.level])
        own.level++;
    own.asked_at = now;
    looks.options = (struct culet_retain_options){.limit_seconds = LIMIT_SECONDS, .limit_bytes = needed};
    atomic_store(&looks.state, WANTED);
    culet_job_trigger(&look_job);
}

void culet_holders_check(const struct culet_reading *reading)
{
    uint64_t used = culet_reading_used(reading), limit = reading->group_limit;
    int state = atomic_load(&looks.state);

    if (looks.distance == 0)
        return;
    if (state == COPYING)
        end_look();
    else if (state == WANTED)
        culet_job_trigger(&look_job);
    else if (used != CULET_UNKNOWN && limit != CULET_UNKNOWN && used < limit && reading->live_slots != CULET_UNKNOWN &&
             reading->resident != CULET_UNKNOWN)
        ask(used, limit, reading);
}

/* ---- start, and fork ---- */

void culet_holders_prepare(uint64_t seconds)
{
    static bool prepared, possible;

    if (!prepared)
        possible = culet_retain_obstacle() == NULL && culet_job_prepare(&look_job);
    prepared = true;
    memset(&own, 0, sizeof(own));
    looks.distance = possible ? seconds * CULET_SECOND : 0;
}

/* A copy that looks is a child, too: it compares with the earlier look. */
void culet_holders_reset(void)
{
    if (atomic_exchange(&looks.state, IDLE) == COPYING)
        culet_copy_close(&looks.copy);
}
