/* ruby.h - whether the process is Ruby. */
#ifndef CULET_RUBY_H
#define CULET_RUBY_H

#include "scope.h"

/* By the files that it has mapped: libruby, or a program whose name begins with ruby. */
bool culet_ruby_is_there(const struct culet_scope *scope);

#endif
