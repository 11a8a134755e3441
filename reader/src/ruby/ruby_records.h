/* ruby_records.h - the records about Ruby's heap. */
#pragma once

#include "ruby/ruby_heap.h"

void culet_ruby_write(const struct culet_ruby *ruby);
