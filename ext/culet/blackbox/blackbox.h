/* blackbox/blackbox.h - Culet::BlackBox; its requests and jobs are the blocks with labels of the profile. */
#pragma once

#include <ruby.h>

/* Defines the native part of Culet::BlackBox. Nothing is written before Culet::BlackBox.map. */
void culet_init_blackbox(VALUE culet);
