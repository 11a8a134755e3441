/* shown.h - variables that are one file's own, shown to selfmap.c, which takes their addresses and nothing else. */
#ifndef CULET_SHOWN_H
#define CULET_SHOWN_H

/* Behind the definition of a static variable: a second name for it. */
#define CULET_SHOW(variable, name) extern __typeof__(variable) name __attribute__((alias(#variable)))

#endif
