/* options.h - the command line. */
#pragma once

#include "process/target.h"

struct culet_options {
    pid_t pid;
    enum culet_mode mode;
    uint64_t slice_ns;
    uint64_t max_chunks; /* blocks to write */
    int notes;           /* descriptor for notes */
};

/* Parses the command line. Wrong usage ends the program with status 2, --help with 0. */
struct culet_options culet_options_read(int argc, char **argv);
