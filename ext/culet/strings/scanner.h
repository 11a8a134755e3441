/*
 * strings/scanner.h - Culet::Strings::Scanner: converts lines of an ObjectSpace dump into records (strings/record.h).
 */
#ifndef CULET_STRINGS_SCANNER_H
#define CULET_STRINGS_SCANNER_H

#include <ruby.h>

void culet_init_scanner(VALUE strings);

#endif
