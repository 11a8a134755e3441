/* agent/clients.h - the table of clients, in the listener's thread. */
#pragma once

#include "agent/client.h"

/* Accepts or rejects a connection. */
void culet_clients_accept(void);

/* The client of a stage that connected first, or NULL. */
struct culet_client *culet_clients_oldest(enum culet_stage stage);

/* As culet_client_answer. */
void culet_clients_answer(struct culet_client *client, struct culet_buffer *buffer, const char *error);

void culet_clients_drop(struct culet_client *client);
