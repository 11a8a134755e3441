/* requires/requires.h - Culet::Requires: what each require of this process costs, into a file. */
#ifndef CULET_REQUIRES_H
#define CULET_REQUIRES_H

#include <ruby.h>

void culet_init_requires(VALUE culet);

/*
 * Whether requires are recorded. Then this function serves them from now on in place of Ruby's own, and nobody need
 * replace the methods again.
 */
int culet_requires_serve_by(VALUE (*require)(VALUE self, VALUE feature));

#endif
