#include "common/tracer.h"

#include <errno.h>
#include <sys/prctl.h>

int culet_allow_tracer(pid_t pid)
{
    return prctl(PR_SET_PTRACER, (unsigned long)pid, 0, 0, 0) == 0 ? 0 : errno;
}

/* Culet.admit_reader(pid): allows pid, and no other process, to read this one. Returns false where the kernel has no Yama
 * and nothing needs to be allowed. */
VALUE
culet_admit_reader(VALUE self, VALUE pid)
{
    int error = culet_allow_tracer(NUM2PIDT(pid));

    if (error == 0)
        return Qtrue;
    if (error == EINVAL)
        return Qfalse;
    rb_syserr_fail(error, "prctl");
}
