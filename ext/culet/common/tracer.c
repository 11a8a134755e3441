/*
 * Lets another process read this one's memory, where the kernel's Yama module (ptrace_scope 1) wants the read process's
 * word for it: `culet-scope`, which a process starts to look at itself, is its child, and a child may not otherwise.
 */
#include "common/tracer.h"

#include <errno.h>
#include <sys/prctl.h>

/* From linux/prctl.h, which older distributions' headers may lack: "Yama" in ASCII. */
#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

/*
 * Culet.admit_reader(pid): pid may read this process until it ends; no other one any more. Returns whether there was
 * anything to allow: false where the kernel has no Yama, which then does not forbid it either.
 */
VALUE
culet_admit_reader(VALUE self, VALUE pid)
{
  if (prctl(PR_SET_PTRACER, (unsigned long)NUM2PIDT(pid), 0, 0, 0) == 0) return Qtrue;
  if (errno == EINVAL) return Qfalse; /* as kernels without Yama answer */
  rb_sys_fail("prctl");
}
