/* profile/ruby_profile.h - Culet::Profile, and the agent's request for it. */
#pragma once

#include <ruby.h>

#include "common/buffer.h"
#include "sampler/core/profile.h"

enum culet_profile_action {
    CULET_PROFILE_STATUS,
    CULET_PROFILE_START,
    CULET_PROFILE_STOP,
    CULET_PROFILE_WRITE,
    CULET_PROFILE_BOOTED,  /* growth is what is allocated from now on */
    CULET_PROFILE_COLLECT, /* major collections, as many as growth has survived */
};

struct culet_profile_request {
    enum culet_profile_action action;
    uint64_t sample_bytes; /* of START; 0: the default */
};

/* Defines the native part of Culet::Profile. Nothing is sampled before Culet::Profile.start. */
void culet_init_profile(VALUE culet);

/* Adds the answer: of WRITE the stream, otherwise one line "running=0|1 sample_bytes=N malloc=0|1", where malloc says
 * whether what malloc returns is sampled. In a Ruby thread. May raise. */
void culet_profile_answer(const struct culet_profile_request *request, struct culet_buffer *buffer);
