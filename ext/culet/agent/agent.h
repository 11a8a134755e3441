/* agent/agent.h - Culet::Agent: answers requests about this Ruby process from inside it. */
#pragma once

#include <ruby.h>

/* Defines the native part of Culet::Agent. The agent listens after Culet::Agent.start. */
void culet_init_agent(VALUE culet);
