/* agent/credentials.h - decides which clients may send requests to this process. */
#pragma once

#include <sys/types.h>

struct culet_credentials {
    pid_t pid; /* 0: in another PID namespace */
    uid_t uid; /* in this process's user namespace */
    gid_t gid;
};

/* Decides whether a client is answered: root always; this process's user and group only if the kernel would let them
 * read its memory (ptrace(2), "Ptrace access mode checking"): equal real, effective and saved IDs, dumpable, no
 * capabilities.
 *
 * Sets `peer`. Returns NULL, or the reason for a rejection. */
const char *culet_credentials_refusal(int connection, struct culet_credentials *credentials);
