/* recorder/recorder.h - Culet::Boot::Recorder: records the cost of each require of this process. */
#pragma once

#include <ruby.h>

void culet_init_recorder(VALUE culet);

/* Whether requires are recorded. If so, the recorder calls this function from now on instead of Ruby's own, and the
 * caller must not replace the methods. */
int culet_recorder_serve_by(VALUE (*require)(VALUE self, VALUE feature));
