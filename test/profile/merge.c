/* merge FRAMES RUBY: prints the merged stack. FRAMES: words of letters and digits, innermost first: v the interpreter's main
 * function, i another function of the interpreter, d the one of deferred work, l its library, x others. RUBY: r Ruby, c a C function.
 * merge FRAMES mark N */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/merge.h"

static const struct culet_interpreter interpreter = {.image = {0x1000, 0x4000},
                                                     .run = {0x1000, 0x1100},
                                                     .functions = {{0x1200, 0x1300}, {0x1000, 0x1100}},
                                                     .count = 2,
                                                     .deferred = {0x3000, 0x3100},
                                                     .has_deferred = true};

static uintptr_t address(char kind, size_t number)
{
    uintptr_t start = kind == 'v'   ? 0x1000
                      : kind == 'i' ? 0x1200
                      : kind == 'l' ? 0x2000
                      : kind == 'd' ? 0x3000
                                    : 0x8000;

    return start + number + 1;
}

int main(int argc, char **argv)
{
    uintptr_t pcs[CULET_PROFILE_FRAMES];
    uint64_t ruby[CULET_PROFILE_FRAMES], words[CULET_PROFILE_FRAMES];
    bool is_c[CULET_PROFILE_FRAMES];
    size_t count = strlen(argv[1]), max = getenv("MAX") ? strtoul(getenv("MAX"), NULL, 10) : CULET_PROFILE_FRAMES,
           found;

    for (size_t i = 0; i < count; i++)
        pcs[i] = address(argv[1][i], i);
    if (argc > 3) {
        found = culet_merge_mark(&interpreter, pcs, count, (enum culet_mark)atoi(argv[3]), words, max);
    } else {
        size_t frames = strlen(argv[2]);
        for (size_t i = 0; i < frames; i++) {
            ruby[i] = culet_word_ruby((uint32_t)i, 1);
            is_c[i] = argv[2][i] == 'c';
        }
        found = culet_merge(&interpreter, pcs, count, ruby, is_c, frames, words, max);
    }
    for (size_t i = 0; i < found; i++) {
        unsigned kind = (unsigned)(words[i] >> CULET_WORD_SHIFT);
        if (kind == CULET_WORD_RUBY)
            printf("%c%u ", argv[2][words[i] >> 24 & 0xff], (unsigned)(words[i] >> 24 & 0xff));
        else if (kind == CULET_WORD_MARK)
            printf("mark%u ", (unsigned)(words[i] & 0xff));
        else
            printf("%c%u ", argv[1][(words[i] & 0xff) - 1], (unsigned)(words[i] & 0xff) - 1);
    }
    return 0;
}
