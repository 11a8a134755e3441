/* strings/scanner.h - Culet::Strings::Scanner: lines of an ObjectSpace dump, made records (strings/record.h). */
#ifndef CULET_STRINGS_SCANNER_H
#define CULET_STRINGS_SCANNER_H

#include <ruby.h>

void culet_init_scanner(VALUE strings);

#endif
