#include "limit/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "limit/text.h"

/* Expected before the first walk. */
#define FIRST_WALK_COSTS (20e-6 / (1 << 20))
/*
 * A new process copies most of what it writes to: faults of its first seconds that bring no memory are copies. Later ones
 * also bring back what a trim has returned.
 */
#define EARLY_SECONDS 2.0
/* The part of copies among later faults before a walk has told. */
#define FIRST_COPIED 0.4
/* A walk while members come or end finds the shares of a moment in between. */
#define SETTLED_SECONDS 0.25
/* A forked process is in the list within this time, mostly. */
#define LISTED_SECONDS 1.0
/* Parts of what a member's faults may have copied that are uncertain: early ones; later ones, and more the more copies. */
#define EARLY_DOUBT 0.05
#define DOUBT 0.15
#define COPIED_DOUBT 0.6
/* Pages of files are mapped by other processes too, mostly. */
#define FILE_DOUBT 0.25
/* Fewer bytes of faults tell nothing about the part of copies. */
#define LEAST_FAULTED (1 << 20)
#define UNREADABLE_SECONDS 60.0
/* More that is not private any more, and was not freed, was forked. */
#define FORKED_BYTES (4 << 20)

static double clock_seconds(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double now(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- what the kernel says ---- */

struct reading {
    char state;
    uint64_t faults, ticks, start; /* minor faults, processor time in clock ticks, start */
    uint64_t anonymous, file;      /* resident bytes */
};

static int read_file(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return culet_text_read(path, text, size);
}

/* proc(5): statm has pages; those of files include shared memory. */
static int read_statm(pid_t pid, struct reading *reading)
{
    char text[256];
    unsigned long long resident, file;

    if (!read_file(pid, "statm", text, sizeof(text)) || sscanf(text, "%*u %llu %llu", &resident, &file) != 2)
        return 0;
    reading->file = (uint64_t)file * page_bytes();
    reading->anonymous = resident > file ? (uint64_t)(resident - file) * page_bytes() : 0;
    return 1;
}

/* proc(5): fields 3, 10, 14, 15 and 22 of stat, behind the name, which may contain anything. */
static int read_process(pid_t pid, struct reading *reading)
{
    char text[1024], *fields;
    unsigned long long faults, user, system, start;

    if (!read_file(pid, "stat", text, sizeof(text)) || (fields = strrchr(text, ')')) == NULL)
        return 0;
    if (sscanf(fields + 1, " %c %*d %*d %*d %*d %*d %*u %llu %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
               &reading->state, &faults, &user, &system, &start) != 5)
        return 0;
    reading->faults = faults;
    reading->ticks = user + system;
    reading->start = start;
    return strchr("ZX", reading->state) == NULL && read_statm(pid, reading);
}

uint64_t culet_cluster_own_anonymous(void)
{
    struct reading reading;

    return read_statm(getpid(), &reading) ? reading.anonymous : UINT64_MAX;
}

/* ---- the list ---- */

static void add_new(struct culet_cluster_member *member, pid_t pid)
{
    *member = (struct culet_cluster_member){.pid = pid};
}

static int reserve(struct culet_cluster *cluster, unsigned count)
{
    struct culet_cluster_member *members = realloc(cluster->members, count * sizeof(*members));

    if (members == NULL)
        return ENOMEM;
    cluster->members = members;
    return 0;
}

void culet_cluster_reset(struct culet_cluster *cluster)
{
    struct culet_cluster_member *members = cluster->members;

    *cluster = (struct culet_cluster){
        .members = members, .funds = CULET_CLUSTER_FIRST_FUNDS, .funded_at = now(), .walk_costs = FIRST_WALK_COSTS};
    if (members == NULL && reserve(cluster, 1) != 0)
        return;
    add_new(cluster->members, getpid());
    cluster->count = 1;
}

static const struct culet_cluster_member *find(const struct culet_cluster_member *members, unsigned count, pid_t pid)
{
    for (unsigned i = 0; i < count; i++)
        if (members[i].pid == pid)
            return &members[i];
    return NULL;
}

int culet_cluster_list(struct culet_cluster *cluster, const pid_t *workers, unsigned count, unsigned forks)
{
    unsigned old = cluster->count;
    struct culet_cluster_member *members;

    if (old == 0 || (members = malloc((count + 1) * sizeof(*members))) == NULL)
        return ENOMEM;
    members[0] = cluster->members[0];
    for (unsigned i = 0; i < count; i++) {
        const struct culet_cluster_member *known = find(cluster->members + 1, old - 1, workers[i]);

        if (known != NULL)
            members[i + 1] = *known;
        else
            add_new(&members[i + 1], workers[i]);
        if (known == NULL)
            cluster->changed_at = now();
    }
    free(cluster->members);
    cluster->members = members;
    cluster->count = count + 1;
    cluster->listed_forks = forks;
    cluster->parent = 1;
    return 0;
}

void culet_cluster_fork(struct culet_cluster *cluster)
{
    atomic_store(&cluster->forked_at, now());
    atomic_fetch_add(&cluster->forks, 1);
}

/* No process forked by this one is missing in the list, but for one whose parent has not noted it yet. */
static int listed(struct culet_cluster *cluster)
{
    unsigned forks = atomic_load(&cluster->forks);

    return forks % 2 == 0 && forks == cluster->listed_forks &&
           (!cluster->parent || now() - atomic_load(&cluster->forked_at) > LISTED_SECONDS);
}

/* ---- looks ---- */

/* Of a process that is new, or another one of that number: all its faults are counted from its birth. */
static void begin_member(struct culet_cluster *cluster, struct culet_cluster_member *member,
                         const struct reading *reading)
{
    add_new(member, member->pid);
    member->start = reading->start;
    member->anonymous = member->shared = reading->anonymous;
    member->file = reading->file;
    member->looked = 1;
    if (member == cluster->members)
        return;
    member->born_at = now();
    if ((double)reading->ticks / (double)sysconf(_SC_CLK_TCK) >= EARLY_SECONDS ||
        (double)reading->start / (double)sysconf(_SC_CLK_TCK) <= cluster->walked_boot)
        cluster->complete = 0; /* what it did before is not known, or the walk did not know of it */
    /* A fork costs more than a walk: so each process is walked once beyond the share. */
    cluster->funds += (double)(reading->anonymous + reading->file) * cluster->walk_costs;
}

/*
 * A fault has brought memory, has copied a page that was shared, or has brought back one that had been returned since
 * the last look. So what the growth does not explain are copies, in part.
 */
static void add_growth(struct culet_cluster_member *member, const struct reading *reading)
{
    int64_t grown = (int64_t)(reading->anonymous - member->anonymous);
    uint64_t faulted = (reading->faults - member->faults) * page_bytes();
    uint64_t unexplained = grown > 0 ? (faulted > (uint64_t)grown ? faulted - (uint64_t)grown : 0) : faulted;

    if (member->born_at > 0 && now() - member->born_at < EARLY_SECONDS)
        member->early += unexplained;
    else
        member->faulted += unexplained;
    member->grown += grown;
    member->file_grown += (int64_t)(reading->file - member->file);
    member->anonymous = reading->anonymous;
    member->file = reading->file;
    member->faults = reading->faults;
}

static void look_at(struct culet_cluster *cluster, struct culet_cluster_member *member)
{
    struct reading reading;

    if (member->ended)
        return;
    if (!read_process(member->pid, &reading) || (member->looked && reading.start != member->start)) {
        member->ended = 1;
        cluster->changed_at = now();
        return;
    }
    if (!member->looked)
        begin_member(cluster, member, &reading);
    add_growth(member, &reading);
}

static double copied_part(const struct culet_cluster *cluster)
{
    return cluster->faulted_bytes > 0 ? cluster->copied_bytes / cluster->faulted_bytes : FIRST_COPIED;
}

static uint64_t least(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* The bytes that it alone maps. It cannot copy more than it shared. */
static int64_t private_bytes(const struct culet_cluster *cluster, const struct culet_cluster_member *member)
{
    uint64_t copied = member->early + (uint64_t)((double)member->faulted * copied_part(cluster));

    return (int64_t)(member->private + least(copied, member->shared)) + member->grown;
}

static double doubt(const struct culet_cluster *cluster, const struct culet_cluster_member *member)
{
    uint64_t early = least(member->early, member->shared), later = least(member->faulted, member->shared - early);

    return (double)early * EARLY_DOUBT + (double)later * (DOUBT + COPIED_DOUBT * copied_part(cluster)) +
           (member->file_grown > 0 ? (double)member->file_grown * FILE_DOUBT : 0);
}

static void add_up(struct culet_cluster *cluster)
{
    int64_t total = (int64_t)cluster->common;

    for (unsigned i = 0; i < cluster->count; i++)
        if (!cluster->members[i].ended)
            total += private_bytes(cluster, &cluster->members[i]);
    cluster->total = total > 0 ? (uint64_t)total : 0;
}

/* ---- walks ---- */

struct rollup {
    uint64_t resident, proportional, private, shared_anonymous;
};

/* proc(5), smaps_rollup: its figures are in KiB. */
static int read_rollup(pid_t pid, struct rollup *rollup)
{
    char text[4096];
    uint64_t shared, files, private_files;

    if (!read_file(pid, "smaps_rollup", text, sizeof(text)))
        return 0;
    rollup->resident = culet_text_field(text, "Rss:") * 1024;
    rollup->proportional = culet_text_field(text, "Pss:") * 1024;
    private_files = culet_text_field(text, "Private_Clean:") * 1024;
    rollup->private = private_files + culet_text_field(text, "Private_Dirty:") * 1024;
    shared = (culet_text_field(text, "Shared_Clean:") + culet_text_field(text, "Shared_Dirty:")) * 1024;
    files = rollup->resident - least(rollup->resident, culet_text_field(text, "Anonymous:") * 1024);
    files -= least(files, private_files);
    rollup->shared_anonymous = shared - least(shared, files);
    return rollup->resident > 0;
}

/* What the faults since the last walk have copied. Not of a parent: its pages become its own as its workers copy them. */
static void learn(struct culet_cluster *cluster, const struct culet_cluster_member *member, uint64_t private)
{
    uint64_t early = least(member->early, member->shared);
    double copied = (double)private - (double)member->private - (double)member->grown - (double)early;

    if (member->faulted < LEAST_FAULTED || early == member->shared ||
        (member == cluster->members && cluster->count > 1))
        return;
    if (copied < 0)
        copied = 0;
    if (copied > (double)member->faulted)
        copied = (double)member->faulted;
    cluster->copied_bytes = cluster->copied_bytes / 2 + copied;
    cluster->faulted_bytes = cluster->faulted_bytes / 2 + (double)member->faulted;
}

/* Returns its bytes that others map too, by their shares; UINT64_MAX: it cannot be read. */
static uint64_t walk(struct culet_cluster *cluster, struct culet_cluster_member *member)
{
    struct rollup rollup;
    double began = clock_seconds(CLOCK_THREAD_CPUTIME_ID), took;

    look_at(cluster, member);
    if (member->ended || !read_rollup(member->pid, &rollup))
        return UINT64_MAX;
    took = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - began;
    cluster->walk_costs = (cluster->walk_costs * 3 + took / (double)rollup.resident) / 4;
    learn(cluster, member, rollup.private);
    member->walked = 1;
    member->private = rollup.private;
    member->shared = rollup.shared_anonymous;
    member->grown = member->file_grown = 0;
    member->early = member->faulted = 0;
    return rollup.proportional - least(rollup.proportional, rollup.private);
}

static double walk_costs(const struct culet_cluster *cluster, const struct culet_cluster_member *member)
{
    return (double)(member->anonymous + member->file) * cluster->walk_costs;
}

/* Without a PSS all that is resident counts. */
static void give_up(struct culet_cluster *cluster)
{
    struct culet_cluster_member *own = cluster->members;

    cluster->readable_at = now() + UNREADABLE_SECONDS;
    if (own->walked)
        return;
    own->walked = 1;
    own->private = own->anonymous + own->file;
    own->shared = 0;
    own->grown = own->file_grown = 0;
}

/* Walks all members; returns 0 if one cannot be read, or this process was forked meanwhile. */
static int walk_members(struct culet_cluster *cluster)
{
    uint64_t common = 0, bytes;

    for (unsigned i = 0; i < cluster->count; i++) {
        if (cluster->members[i].ended)
            continue;
        bytes = walk(cluster, &cluster->members[i]);
        if (bytes != UINT64_MAX)
            common += bytes;
        else if (!cluster->members[i].ended)
            return 0;
    }
    if (cluster->parent && !listed(cluster))
        return 0;
    cluster->common = common;
    return 1;
}

/*
 * Finds out anew what the members share. Pages that were private to this process may be shared with one that was forked
 * meanwhile; then what was known of this process stays.
 */
static void walk_all(struct culet_cluster *cluster)
{
    struct culet_cluster_member own = cluster->members[0];

    if (cluster->parent && !listed(cluster))
        return;
    cluster->complete = 1;
    cluster->walked_at = now();
    cluster->walked_boot = clock_seconds(CLOCK_BOOTTIME);
    if (walk_members(cluster))
        return;
    cluster->members[0] = own;
    if (cluster->parent && !listed(cluster))
        cluster->complete = 0;
    else
        give_up(cluster);
}

/* A worker that has forked others shares what it had alone: then all are to be walked, and it stays as it was. */
static void walk_one(struct culet_cluster *cluster, struct culet_cluster_member *member)
{
    struct culet_cluster_member before = *member;

    if (walk(cluster, member) == UINT64_MAX)
        return;
    if ((int64_t)(member->private + FORKED_BYTES) >= (int64_t)before.private + before.grown)
        return;
    *member = before;
    cluster->complete = 0;
}

static struct culet_cluster_member *most_uncertain(const struct culet_cluster *cluster)
{
    struct culet_cluster_member *most = cluster->members;

    for (unsigned i = 1; i < cluster->count; i++)
        if (!cluster->members[i].ended && doubt(cluster, &cluster->members[i]) > doubt(cluster, most))
            most = &cluster->members[i];
    return most;
}

/* Walks what is due and can be paid for. */
static void walk_due(struct culet_cluster *cluster, double time)
{
    double all = 0, doubts = 0;
    struct culet_cluster_member *most = most_uncertain(cluster);

    for (unsigned i = 0; i < cluster->count; i++) {
        all += walk_costs(cluster, &cluster->members[i]);
        doubts += doubt(cluster, &cluster->members[i]);
    }
    if (!cluster->parent && !listed(cluster)) { /* a process that is no worker shares pages of this one */
        cluster->listed_forks = atomic_load(&cluster->forks);
        cluster->complete = 0;
    }
    if (cluster->funds >= all && time - cluster->changed_at >= SETTLED_SECONDS &&
        (!cluster->complete || time - cluster->walked_at >= CULET_CLUSTER_WALK_SECONDS))
        walk_all(cluster);
    else if (doubts * CULET_CLUSTER_UNCERTAIN < (double)cluster->total)
        return;
    else if (most == cluster->members && cluster->funds >= all)
        walk_all(cluster);
    else if (most != cluster->members && cluster->funds >= walk_costs(cluster, most))
        walk_one(cluster, most);
}

/* ---- readings ---- */

static int look_due(const struct culet_cluster *cluster, enum culet_cluster_use use, double time)
{
    int rich = cluster->funds > CULET_CLUSTER_FUNDS / 4;
    double share = use == CULET_CLUSTER_NEAR && rich ? CULET_CLUSTER_NEAR_LOOK_SHARE : CULET_CLUSTER_LOOK_SHARE;

    return use == CULET_CLUSTER_NOW || time - cluster->looked_at >= cluster->look_costs * share;
}

static void look(struct culet_cluster *cluster, double time)
{
    double began = clock_seconds(CLOCK_THREAD_CPUTIME_ID);

    cluster->looked_at = time;
    for (unsigned i = 0; i < cluster->count; i++)
        look_at(cluster, &cluster->members[i]);
    cluster->look_costs = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - began;
    add_up(cluster);
}

static void fund(struct culet_cluster *cluster, double time)
{
    cluster->funds += (time - cluster->funded_at) * CULET_CLUSTER_SHARE;
    if (cluster->funds > CULET_CLUSTER_FUNDS)
        cluster->funds = CULET_CLUSTER_FUNDS;
    cluster->funded_at = time;
}

uint64_t culet_cluster_bytes(struct culet_cluster *cluster, enum culet_cluster_use use)
{
    double time = now(), began = clock_seconds(CLOCK_THREAD_CPUTIME_ID);

    if (cluster->count == 0)
        return UINT64_MAX;
    fund(cluster, time);
    if (look_due(cluster, use, time))
        look(cluster, time);
    if (!cluster->members->walked)
        walk_all(cluster);
    else if (use != CULET_CLUSTER_NOW && time >= cluster->readable_at)
        walk_due(cluster, time);
    add_up(cluster);
    cluster->funds -= clock_seconds(CLOCK_THREAD_CPUTIME_ID) - began;
    return cluster->total;
}
