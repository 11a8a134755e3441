#include "limit/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>
#include <unistd.h>

#include "reading/clock.h"
#include "reading/process.h"

/* Expected before the first walk. */
#define FIRST_WALK_COSTS (20e-6 / (1 << 20))
/* A new process copies most of what it writes to: faults of its first seconds that bring no memory are copies. Later ones
 * also bring back what a trim has returned. */
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

static double now(void)
{
    return culet_clock_seconds(CLOCK_MONOTONIC);
}

/* ---- what the kernel says ---- */

static const char *folder_of(pid_t pid, char *folder, size_t size)
{
    snprintf(folder, size, "/proc/%d", (int)pid);
    return folder;
}

static int read_process(pid_t pid, struct culet_stat *stat, struct culet_sizes *sizes)
{
    char folder[32];

    return culet_read_stat(folder_of(pid, folder, sizeof(folder)), stat) && culet_read_sizes(folder, sizes);
}

/* ---- the list ---- */

static void add_new(struct culet_cluster_member *member, pid_t pid)
{
    *member = (struct culet_cluster_member){.pid = pid};
}

void culet_cluster_reset(struct culet_cluster *cluster)
{
    struct culet_cluster_member *members = cluster->members ? cluster->members : malloc(sizeof(*members));

    *cluster = (struct culet_cluster){
        .members = members, .funds = CULET_CLUSTER_FIRST_FUNDS, .funded_at = now(), .walk_costs = FIRST_WALK_COSTS};
    if (members == NULL)
        return;
    add_new(members, getpid());
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

/* Starts a new process, or another one with a reused number: all its faults count. */
static void begin_member(struct culet_cluster *cluster, struct culet_cluster_member *member,
                         const struct culet_stat *stat, const struct culet_sizes *sizes)
{
    add_new(member, member->pid);
    member->start = stat->start;
    member->anonymous = member->shared = culet_sizes_anonymous(sizes);
    member->file = sizes->files;
    member->looked = 1;
    if (member == cluster->members)
        return;
    member->born_at = now();
    if ((double)stat->ticks / (double)sysconf(_SC_CLK_TCK) >= EARLY_SECONDS ||
        (double)stat->start / (double)sysconf(_SC_CLK_TCK) <= cluster->walked_boot)
        cluster->complete = 0; /* what it did before is not known, or the walk did not know of it */
    /* A fork costs more than a walk: so each process is walked once beyond the share. */
    cluster->funds += (double)(member->anonymous + member->file) * cluster->walk_costs;
}

/* A fault has brought memory, has copied a page that was shared, or has brought back one that had been returned since
 * the last look. So what the growth does not explain are copies, in part. */
static void add_growth(struct culet_cluster_member *member, const struct culet_stat *stat,
                       const struct culet_sizes *sizes)
{
    uint64_t anonymous = culet_sizes_anonymous(sizes);
    int64_t grown = (int64_t)(anonymous - member->anonymous);
    uint64_t faulted = (stat->faults - member->faults) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t unexplained = grown > 0 ? (faulted > (uint64_t)grown ? faulted - (uint64_t)grown : 0) : faulted;

    if (member->born_at > 0 && now() - member->born_at < EARLY_SECONDS)
        member->early += unexplained;
    else
        member->faulted += unexplained;
    member->grown += grown;
    member->file_grown += (int64_t)(sizes->files - member->file);
    member->anonymous = anonymous;
    member->file = sizes->files;
    member->faults = stat->faults;
}

static void look_at(struct culet_cluster *cluster, struct culet_cluster_member *member)
{
    struct culet_stat stat;
    struct culet_sizes sizes;

    if (member->ended)
        return;
    if (!read_process(member->pid, &stat, &sizes) || (member->looked && stat.start != member->start)) {
        member->ended = 1;
        cluster->changed_at = now();
        return;
    }
    if (!member->looked)
        begin_member(cluster, member, &stat, &sizes);
    add_growth(member, &stat, &sizes);
}

static double copied_part(const struct culet_cluster *cluster)
{
    return cluster->faulted_bytes > 0 ? cluster->copied_bytes / cluster->faulted_bytes : FIRST_COPIED;
}

/* The bytes that it alone maps. It cannot copy more than it shared. */
static int64_t private_bytes(const struct culet_cluster *cluster, const struct culet_cluster_member *member)
{
    uint64_t copied = member->early + (uint64_t)((double)member->faulted * copied_part(cluster));

    return (int64_t)(member->private + MIN(copied, member->shared)) + member->grown;
}

static double doubt(const struct culet_cluster *cluster, const struct culet_cluster_member *member)
{
    uint64_t early = MIN(member->early, member->shared), later = MIN(member->faulted, member->shared - early);

    return (double)early * EARLY_DOUBT + (double)later * (DOUBT + COPIED_DOUBT * copied_part(cluster)) +
           (member->file_grown > 0 ? (double)member->file_grown * FILE_DOUBT : 0);
}

static void add_up(struct culet_cluster *cluster)
{
    int64_t total = (int64_t)cluster->common;

    for (unsigned i = 0; i < cluster->count; i++)
        if (!cluster->members[i].ended)
            total += private_bytes(cluster, &cluster->members[i]);
    cluster->total = (uint64_t)MAX(total, 0);
}

/* ---- walks ---- */

static uint64_t private_of(const struct culet_rollup *rollup)
{
    return rollup->private_clean + rollup->private_dirty;
}

/* The bytes of shared pages that are not pages of files. */
static uint64_t shared_anonymous(const struct culet_rollup *rollup)
{
    uint64_t shared = rollup->shared_clean + rollup->shared_dirty;
    uint64_t files = rollup->resident - MIN(rollup->resident, rollup->anonymous);

    files -= MIN(files, rollup->private_clean);
    return shared - MIN(shared, files);
}

/* Learns the share of copies among the faults since the last walk. Not for a parent, whose pages become private as its
 * workers copy them. */
static void learn(struct culet_cluster *cluster, const struct culet_cluster_member *member, uint64_t private)
{
    uint64_t early = MIN(member->early, member->shared);
    double copied = (double)private - (double)member->private - (double)member->grown - (double)early;

    if (member->faulted < LEAST_FAULTED || early == member->shared ||
        (member == cluster->members && cluster->count > 1))
        return;
    copied = MAX(0, MIN(copied, (double)member->faulted));
    cluster->copied_bytes = cluster->copied_bytes / 2 + copied;
    cluster->faulted_bytes = cluster->faulted_bytes / 2 + (double)member->faulted;
}

/* Returns its bytes that others map too, by their shares; CULET_UNKNOWN: it cannot be read. */
static uint64_t walk(struct culet_cluster *cluster, struct culet_cluster_member *member)
{
    struct culet_rollup rollup;
    char folder[32];
    double began = culet_clock_seconds(CLOCK_THREAD_CPUTIME_ID), took;

    look_at(cluster, member);
    if (member->ended || !culet_read_rollup(folder_of(member->pid, folder, sizeof(folder)), &rollup) ||
        rollup.resident == 0)
        return CULET_UNKNOWN;
    took = culet_clock_seconds(CLOCK_THREAD_CPUTIME_ID) - began;
    cluster->walk_costs = (cluster->walk_costs * 3 + took / (double)rollup.resident) / 4;
    learn(cluster, member, private_of(&rollup));
    member->walked = 1;
    member->private = private_of(&rollup);
    member->shared = shared_anonymous(&rollup);
    member->grown = member->file_grown = 0;
    member->early = member->faulted = 0;
    return rollup.proportional - MIN(rollup.proportional, private_of(&rollup));
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
        if (bytes != CULET_UNKNOWN)
            common += bytes;
        else if (!cluster->members[i].ended)
            return 0;
    }
    if (cluster->parent && !listed(cluster))
        return 0;
    cluster->common = common;
    return 1;
}

/* Finds out anew what the members share. Pages that were private to this process may be shared with one that was forked
 * meanwhile; then what was known of this process stays. */
static void walk_all(struct culet_cluster *cluster)
{
    struct culet_cluster_member own = cluster->members[0];

    if (cluster->parent && !listed(cluster))
        return;
    cluster->complete = 1;
    cluster->walked_at = now();
    cluster->walked_boot = culet_clock_seconds(CLOCK_BOOTTIME);
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

    if (walk(cluster, member) == CULET_UNKNOWN)
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
    double began = culet_clock_seconds(CLOCK_THREAD_CPUTIME_ID);

    cluster->looked_at = time;
    for (unsigned i = 0; i < cluster->count; i++)
        look_at(cluster, &cluster->members[i]);
    cluster->look_costs = culet_clock_seconds(CLOCK_THREAD_CPUTIME_ID) - began;
    add_up(cluster);
}

static void fund(struct culet_cluster *cluster, double time)
{
    cluster->funds = MIN(cluster->funds + (time - cluster->funded_at) * CULET_CLUSTER_SHARE, CULET_CLUSTER_FUNDS);
    cluster->funded_at = time;
}

uint64_t culet_cluster_bytes(struct culet_cluster *cluster, enum culet_cluster_use use)
{
    double time = now(), began = culet_clock_seconds(CLOCK_THREAD_CPUTIME_ID);

    if (cluster->count == 0)
        return CULET_UNKNOWN;
    fund(cluster, time);
    if (look_due(cluster, use, time))
        look(cluster, time);
    if (!cluster->members->walked)
        walk_all(cluster);
    else if (use != CULET_CLUSTER_NOW && time >= cluster->readable_at)
        walk_due(cluster, time);
    add_up(cluster);
    cluster->funds -= culet_clock_seconds(CLOCK_THREAD_CPUTIME_ID) - began;
    return cluster->total;
}
