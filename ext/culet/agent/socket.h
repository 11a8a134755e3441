/* agent/socket.h - the agent's socket.
 *
 * The socket is in a folder that only this process's user may enter: "culet" in $XDG_RUNTIME_DIR, in systemd's
 * $RUNTIME_DIRECTORY, in /run/user/UID, for root in /run. Without such a folder it is in Linux's abstract namespace,
 * unix(7), as "culet-agent/PID/RANDOM" with the PID of the process's own namespace; no other process can guess and bind
 * the name. Clients find either name in /proc/PID/net/unix and /proc/PID/fd. */
#pragma once

#include <sys/un.h>

struct culet_agent_socket {
    int fd;                                                 /* non-blocking; -1: none */
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "": abstract */
};

/* Opens a socket and listens. Takes no locks of the program, so that a forked child can call it.
 *
 * sweep: whether to remove the sockets of killed processes
 * Returns 0 or an errno. */
int culet_agent_socket_open(struct culet_agent_socket *opened, int sweep);

/* Removes the socket's path; open connections stay. */
void culet_agent_socket_forget(struct culet_agent_socket *opened);

/* keep_name: in a forked child, whose parent still uses the path */
void culet_agent_socket_close(struct culet_agent_socket *opened, int keep_name);
