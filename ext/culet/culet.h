/* culet.h - the native parts of modules that nothing else in C calls. */
#pragma once

#include <ruby.h>

void culet_init_agent(VALUE culet);       /* Culet::Agent; nothing listens before Culet::Agent.start */
void culet_init_blackbox(VALUE culet);    /* Culet::BlackBox; nothing is written before Culet::BlackBox.map */
void culet_init_memory_file(VALUE culet); /* files in memory, to which `culet trace` records */
void culet_init_strings(VALUE culet);     /* Culet::Strings.analyse, .site_names and Culet::Strings::Scanner */
void culet_init_trim(VALUE culet);        /* Culet.trim, Culet.trim_stats and Culet::Trim */
