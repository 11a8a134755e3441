/* words.h - Culet::Words: what is looked for in the bytes of other processes' memory, millions of words at a time. */
#ifndef CULET_WORDS_H
#define CULET_WORDS_H

#include <ruby.h>

void culet_init_words(VALUE culet);

#endif
