/* strings/scanner.h - Culet::Strings::Scanner: converts lines of an ObjectSpace dump into records
 * (strings/record.h). */
#pragma once

#include <ruby.h>

void culet_init_scanner(VALUE strings);
