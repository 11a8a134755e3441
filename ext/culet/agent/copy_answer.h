/* agent/copy_answer.h - the answers that forked copies of the process make, in the listener's thread. */
#pragma once

#include "agent/client.h"

/* Reads the status of a copy; sends its answer to the client when the copy has ended. */
void culet_copy_answer_read(struct culet_client *client);

/* Kills the copy. */
void culet_copy_answer_kill(const struct culet_client *client);

/* Kills the copy and answers with an error, after the deadline. */
void culet_copy_answer_end(struct culet_client *client);
