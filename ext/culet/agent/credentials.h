/* agent/credentials.h - who may ask this process. */
#ifndef CULET_AGENT_CREDENTIALS_H
#define CULET_AGENT_CREDENTIALS_H

#include <sys/types.h>

struct culet_credentials {
  pid_t pid; /* 0: not of this PID namespace, or of a child of it */
  uid_t uid; /* both as this process's user namespace numbers them */
  gid_t gid;
};

/*
 * Whether a connection is to be answered: to root always; to this process's own user and group only if the kernel would
 * let them read this process's memory too, ptrace(2), "Ptrace access mode checking": real, effective and saved ids are
 * one, the process is dumpable, and it holds no capabilities.
 *
 * peer: is filled in
 * Returns NULL, or a sentence: why it is not.
 */
const char *culet_credentials_refusal(int connection, struct culet_credentials *credentials);

#endif
