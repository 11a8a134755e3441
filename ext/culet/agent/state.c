#include "agent/state.h"

struct culet_agent culet_agent = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .copy = {-1, -1}, .wakeup = -1, .socket = {.fd = -1}};

void culet_agent_lock(void)
{
    pthread_mutex_lock(&culet_agent.lock);
}

void culet_agent_unlock(void)
{
    pthread_mutex_unlock(&culet_agent.lock);
}
