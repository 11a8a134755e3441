/*
 * agent/socket.h - where the agent can be found.
 *
 * In a folder that only this process's user may enter, if there is one for it: "culet" in $XDG_RUNTIME_DIR, in systemd's
 * $RUNTIME_DIRECTORY, in /run/user/UID, of root in /run. Else in Linux's abstract namespace, unix(7), as
 * "culet-agent/PID/RANDOM", PID being the process's own number in its PID namespace: nobody can take a name first that
 * cannot be guessed. /proc/PID/net/unix and /proc/PID/fd tell either name to whoever may ask.
 */
#ifndef CULET_AGENT_SOCKET_H
#define CULET_AGENT_SOCKET_H

#include <sys/un.h>

struct culet_agent_socket {
  int fd;                                            /* -1: none; does not block */
  char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* in a folder; "": abstract */
};

/*
 * Opens one and listens. Also for a child after fork: takes no locks of the program's.
 *
 * sweep: whether sockets of processes that were killed are removed from the folder
 * Returns 0, or an error's number.
 */
int culet_agent_socket_open(struct culet_agent_socket *opened, int sweep);

/* Removes its name from the folder: who has it open goes on. */
void culet_agent_socket_forget(struct culet_agent_socket *opened);

/* keep_name: for a child after fork, whose parent still has the name */
void culet_agent_socket_close(struct culet_agent_socket *opened, int keep_name);

#endif
