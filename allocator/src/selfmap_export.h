/* selfmap_export.h - gives selfmap.c the address of another file's static variable, and nothing else. */
#pragma once

/* After the definition of a static variable: a second, hidden name for it. */
#define CULET_SELFMAP_EXPORT(variable, name) extern __typeof__(variable) name __attribute__((alias(#variable)))
