/* After a limit for the sum of all pauses the process is read while it runs. */
#include "process/target.h"

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
    CHECK(target.paused, "it is not paused");
    culet_target_resume(&target);
    target.counted_ns = 1990000000;
    culet_target_pause(&target);
    CHECK(!target.paused && target.mode == CULET_LIVE && target.limit_reached, "it is paused again");
    CHECK(strstr(target.why_live, "read while it ran"), "the reason is missing: %s", target.why_live);
    CHECK(!culet_target_due(&target), "a slice ends that did not begin");
    signal(SIGCHLD, SIG_DFL); /* the handler of tracing.c reaps all children */
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child, "the child cannot be waited for");
}

/* The limit does not apply to one long pause (--stop). */
TEST(one_pause_as_long_as_it_takes)
{
    struct culet_target target;
    pid_t child = start();

    culet_target_open(&target, child, CULET_STOPPED, 20000000);
    target.counted_ns = UINT64_C(5000000000);
    culet_target_pause(&target);
    CHECK(target.paused, "it is not paused");
    culet_target_release(&target);
    signal(SIGCHLD, SIG_DFL); /* the handler of tracing.c reaps all children */
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child, "the child cannot be waited for");
}

CHECK_MAIN
