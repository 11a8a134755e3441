/* requires/requires.h - Culet::Requires: records the cost of each require of this process. */
#ifndef CULET_REQUIRES_H
#define CULET_REQUIRES_H

#include <ruby.h>

void culet_init_requires(VALUE culet);

/*
 * Whether requires are recorded. If so, the recorder calls this function from now on instead of Ruby's own, and the
 * caller must not replace the methods.
 */
int culet_requires_serve_by(VALUE (*require)(VALUE self, VALUE feature));

#endif
