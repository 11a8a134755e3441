/* limit/cluster.h - the proportional set size of a process and of the workers that it forked, together: each page that
 * they share counts once.
 *
 * The kernel walks the page tables for a PSS (smaps_rollup, 20 us per MiB). So a reading is an estimate: what the last
 * walks found, and what the kernel's counters of each process say since (stat and statm, 15 us). Knows no Ruby. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

/* The part of one processor's time that readings may take, and the most that may be saved up, in seconds. */
#define CULET_CLUSTER_SHARE 0.001
#define CULET_CLUSTER_FUNDS 0.06
/* The funds at the start, because the first minute of workers needs most readings. */
#define CULET_CLUSTER_FIRST_FUNDS 0.03

/* A look takes this part of the time at most; near the limit, as long as a quarter of the funds is left, the second. */
#define CULET_CLUSTER_LOOK_SHARE 4000
#define CULET_CLUSTER_NEAR_LOOK_SHARE 400

/* A walk is due if this part of the total is uncertain, or after so many seconds. */
#define CULET_CLUSTER_UNCERTAIN 100
#define CULET_CLUSTER_WALK_SECONDS 60.0

struct culet_cluster_member {
    pid_t pid;
    uint64_t start;   /* clock ticks since boot: tells the process from a later one of this number */
    int ended;        /* it has no memory any more */
    int looked;       /* the values of the last look are set */
    double born_at;   /* about when it was forked; 0: before the first look */
    int walked;       /* its page tables were walked */
    uint64_t private; /* bytes that it alone maps, at the last walk; 0 before */
    uint64_t shared;  /* anonymous bytes that it can copy by writing to them: those that it shared then */
    /* Since the last walk, or since its birth: */
    int64_t grown;      /* anonymous resident bytes */
    int64_t file_grown; /* resident bytes of files */
    uint64_t early;     /* bytes of faults without such growth of a new process's first seconds */
    uint64_t faulted;   /* bytes of the later ones */
    /* At the last look: */
    uint64_t anonymous, file, faults; /* bytes, bytes, number */
};

struct culet_cluster {
    struct culet_cluster_member *members; /* the first is this process */
    unsigned count;
    _Atomic unsigned forks;   /* odd: this process is being forked */
    unsigned listed_forks;    /* as of the list of members */
    _Atomic double forked_at; /* the last fork; its process may not be in the list yet */
    double walked_boot;       /* when all members were walked, in seconds since boot */
    uint64_t common;          /* bytes that several members map */
    int parent;               /* it has been told of workers */
    int complete;             /* 0: all members are to be walked at one moment */
    double changed_at, walked_at;
    double copied_bytes, faulted_bytes; /* of the last walks, each half as much as the next: what faults copied */
    double funds, funded_at;
    double looked_at, look_costs;
    double walk_costs;  /* seconds per byte */
    double readable_at; /* smaps_rollup cannot be read; not again before then */
    uint64_t total;
};

/* This process alone, and nothing read. Also in a forked child. Keeps the memory of the list. */
void culet_cluster_reset(struct culet_cluster *cluster);

/* The workers of this process; those that stay keep what is known of them. forks: cluster->forks before the list was
 * made. Returns 0 or ENOMEM. */
int culet_cluster_list(struct culet_cluster *cluster, const pid_t *workers, unsigned count, unsigned forks);

/* Before and after each fork of this process: a walk meanwhile would miss what the new process shares. */
void culet_cluster_fork(struct culet_cluster *cluster);

enum culet_cluster_use {
    CULET_CLUSTER_FAR,  /* an estimate as old as its costs allow; may walk */
    CULET_CLUSTER_NEAR, /* a newer one */
    CULET_CLUSTER_NOW   /* of this moment; does not walk, except for the first */
};

/* The bytes in use, or CULET_UNKNOWN. One thread at a time. */
uint64_t culet_cluster_bytes(struct culet_cluster *cluster, enum culet_cluster_use use);
