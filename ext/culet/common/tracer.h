/* common/tracer.h - who may read this process's memory. */
#ifndef CULET_READER_H
#define CULET_READER_H

#include <ruby.h>

VALUE culet_admit_reader(VALUE self, VALUE pid);

#endif
