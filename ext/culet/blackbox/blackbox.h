/* blackbox/blackbox.h - Culet::BlackBox; its requests and jobs are the blocks with labels of the profile. */
#ifndef CULET_BLACKBOX_H
#define CULET_BLACKBOX_H

#include <ruby.h>

/* Defines the native part of Culet::BlackBox. Nothing is written before Culet::BlackBox.map. */
void culet_init_blackbox(VALUE culet);

#endif
