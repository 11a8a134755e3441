/* common/filter.h - whether the process has a filter of system calls (seccomp(2)).
 *
 * A filter may end the process for a call that it does not permit, so such a call cannot be tried. Under any filter, calls
 * that are useful but not needed are left out if they are not in the sets that every service has (systemd's
 * @resources). */
#pragma once

#include <sys/prctl.h>

static inline int culet_filtered(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) > 0;
}
