#define _GNU_SOURCE
#include "profile_file.h"

#include "../../sampler/core/host.h"
#include "../../sampler/core/samples.h"
#include "abandoned.h"
#include "loader.h"
#include "lock.h"
#include "os.h"
#include "program.h"
#include "thread.h"

#include <limits.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define LAST ".last"

static bool wanted; /* constant after set-up */

/* ---- while the program runs ---- */

/* Between two writes the thread pauses so many times as long as the first one took. */
#define REST_PER_COST 50

enum state { OFF, REQUESTED, STARTED };

static _Atomic enum state state;
static struct culet_lock writing; /* taken before all others, so that a fork finds no file half written */
static bool left;                 /* [writing] there is a file of this process */
static bool ending;               /* [writing] */

static bool last_path(char *path, size_t room)
{
    const char *pattern = culet_settings.profile_out;
    size_t length;

    if (!pattern || !culet_host_expand(pattern, path, room - sizeof LAST))
        return false;
    length = strlen(path);
    memcpy(path + length, LAST, sizeof LAST);
    return true;
}

static bool write_last(void)
{
    char path[PATH_MAX];

    culet_lock(&writing);
    bool done = !ending && last_path(path, sizeof path) && culet_host_write(path);
    left |= done;
    culet_unlock(&writing);
    return done;
}

static uint64_t microseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* One that cannot be written is reported once. */
static void *keep(void *unused)
{
    uint64_t least = (uint64_t)culet_settings.profile_seconds * 1000000;

    prctl(PR_SET_NAME, "culet");
    for (uint64_t pause = least; pause;) {
        culet_os_pause((unsigned)(pause < UINT_MAX ? pause : UINT_MAX));
        uint64_t begun = microseconds();
        bool done = write_last();
        uint64_t rest = REST_PER_COST * (microseconds() - begun);
        pause = !done ? 0 : rest > least ? rest : least;
    }
    return unused;
}

void culet_profile_file_setup(void)
{
    const char *pattern = culet_settings.profile_out;

    wanted = culet_settings.profile_bytes && !(pattern && !*pattern) && !getauxval(AT_SECURE) && !culet_program_ruby();
    if (wanted && culet_settings.profile_seconds)
        atomic_store(&state, REQUESTED);
}

static bool inside_loader(void)
{
    uint64_t words[CULET_PROFILE_FRAMES];
    size_t count = culet_profile_api.capture(words, CULET_PROFILE_FRAMES);

    for (size_t i = 0; i < count; i++)
        if (culet_loader_busy((const void *)(uintptr_t)words[i]))
            return true;
    return false;
}

void culet_profile_file_sampled(void)
{
    enum state requested = REQUESTED;

    if (CULET_LIKELY(atomic_load_explicit(&state, memory_order_relaxed) != REQUESTED) ||
        atomic_load(&culet_lock_held_for_fork) || inside_loader() ||
        !atomic_compare_exchange_strong(&state, &requested, STARTED))
        return;
    culet_abandoned_watch();
    if (!culet_thread_start(keep))
        atomic_store(&state, OFF);
}

bool culet_profile_file_inside(void)
{
    return culet_lock_mine(&writing);
}

void culet_profile_file_before_fork(void)
{
    culet_lock(&writing);
}

void culet_profile_file_after_fork_in_parent(void)
{
    culet_unlock(&writing);
}

/* The thread is not in the child. */
void culet_profile_file_after_fork_in_child(void)
{
    left = false;
    if (atomic_load(&state) != OFF)
        atomic_store(&state, REQUESTED);
    culet_lock_reset(&writing);
}

/* ---- at exit ---- */

void culet_profile_file_end(void)
{
    char path[PATH_MAX];

    if (!wanted || culet_abandoned())
        return;
    culet_lock(&writing);
    ending = true;
    if (culet_host_write_at_exit(culet_settings.profile_out) && left && last_path(path, sizeof path))
        unlink(path);
    culet_unlock(&writing);
}
