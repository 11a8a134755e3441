/* agent/agent.h - Culet::Agent: answers requests about this Ruby process from inside it. */
#ifndef CULET_AGENT_H
#define CULET_AGENT_H

#include <ruby.h>

/* Defines the native part of Culet::Agent. Nothing listens before Culet::Agent.start. */
void culet_init_agent(VALUE culet);

#endif
