/* selfmap_export.h - variables that are one file's own, shown to selfmap.c, which takes their addresses and nothing else. */
#ifndef CULET_SELFMAP_EXPORT_H
#define CULET_SELFMAP_EXPORT_H

/* Behind the definition of a static variable: a second name for it. */
#define CULET_SELFMAP_EXPORT(variable, name) extern __typeof__(variable) name __attribute__((alias(#variable)))

#endif
