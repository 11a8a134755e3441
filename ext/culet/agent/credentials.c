#include "agent/credentials.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reading/kernel_file.h"

/* Linux's default; /proc/sys may not be mounted. */
#define DEFAULT_OVERFLOW 65534

/* The overflow ID of all users without a number in this user namespace, see user_namespaces(7). It identifies
 * no user, even if this process has the same ID. */
static unsigned long overflow_id(const char *path)
{
    char text[16];
    uint64_t id = culet_kernel_file_read_path(path, text, sizeof(text)) ? culet_number(text) : CULET_UNKNOWN;

    return id != CULET_UNKNOWN ? (unsigned long)id : DEFAULT_OVERFLOW;
}

/* Whether the process has capabilities, and so more rights than its user. An error counts as yes. */
static int holds_capabilities(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, data) != 0)
        return 1;
    return (data[0].permitted | data[1].permitted) != 0;
}

/* As __ptrace_may_access in Linux's kernel/ptrace.c. */
static int is_readable_by(const struct culet_credentials *credentials)
{
    uid_t real, effective, saved;
    gid_t real_group, effective_group, saved_group;

    if (getresuid(&real, &effective, &saved) != 0 || getresgid(&real_group, &effective_group, &saved_group) != 0)
        return 0;
    if (credentials->uid != real || credentials->uid != effective || credentials->uid != saved)
        return 0;
    if (credentials->gid != real_group || credentials->gid != effective_group || credentials->gid != saved_group)
        return 0;
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1 && !holds_capabilities();
}

const char *culet_credentials_refusal(int connection, struct culet_credentials *credentials)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return "the kernel does not report who connects";
    *credentials = (struct culet_credentials){peer.pid, peer.uid, peer.gid};
    /* Before the check for root: the overflow ID can be configured to be 0. */
    if (credentials->uid == overflow_id("/proc/sys/kernel/overflowuid"))
        return "it cannot identify you: your user has no ID in its user namespace; run culet as root of that namespace";
    if (credentials->uid == 0)
        return NULL;
    if (credentials->gid == overflow_id("/proc/sys/kernel/overflowgid"))
        return "it cannot identify you: your group has no ID in its user namespace; run culet as root of that "
               "namespace";
    if (credentials->uid != geteuid())
        return "it answers only its own user and root";
    if (!is_readable_by(credentials))
        return "it answers only root, because it changed its user or group, has capabilities, or is not dumpable";
    return NULL;
}
