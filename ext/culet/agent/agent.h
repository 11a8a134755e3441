/* agent/agent.h - Culet::Agent: answers `culet signal` from inside a Ruby process. */
#ifndef CULET_AGENT_H
#define CULET_AGENT_H

#include <ruby.h>

/* Defines the native part of module Culet::Agent. Nothing listens before Culet::Agent.start. */
void culet_init_agent(VALUE culet);

#endif
