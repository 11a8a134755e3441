/* ruby_records.h - the records about Ruby's heap. */
#ifndef CULET_RUBY_RECORDS_H
#define CULET_RUBY_RECORDS_H

#include "ruby/ruby_heap.h"

void culet_ruby_write(const struct culet_ruby *ruby);

#endif
