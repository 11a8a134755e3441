/* Pauses of a process come to an end: once they were long enough in all, it is read while it runs. */
#include "target.h"

#include "check.h"

#include <sys/prctl.h>

static pid_t start(void)
{
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return child;
}

TEST(no_more_pauses)
{
    struct culet_target target;
    pid_t child = start();

    culet_target_open(&target, child, CULET_SLICED, 20000000);
    culet_target_pause(&target);
    CHECK(culet_target_still(&target), "it is not paused");
    culet_target_resume(&target);
    target.counted_ns = 1990000000;
    culet_target_pause(&target);
    CHECK(!culet_target_still(&target) && target.mode == CULET_LIVE && target.enough, "it is paused again");
    CHECK(strstr(target.why_live, "read while it ran"), "it is not said why: %s", target.why_live);
    CHECK(!culet_target_due(&target), "a slice ends that did not begin");
    signal(SIGCHLD, SIG_DFL); /* the pauses' own handler waits for all children */
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child, "the child cannot be waited for");
}

/* One long pause is what was asked for. */
TEST(one_pause_as_long_as_it_takes)
{
    struct culet_target target;
    pid_t child = start();

    culet_target_open(&target, child, CULET_STOPPED, 20000000);
    target.counted_ns = UINT64_C(5000000000);
    culet_target_pause(&target);
    CHECK(culet_target_still(&target), "it is not paused");
    culet_target_release(&target);
    signal(SIGCHLD, SIG_DFL); /* the pauses' own handler waits for all children */
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child, "the child cannot be waited for");
}

CHECK_MAIN
