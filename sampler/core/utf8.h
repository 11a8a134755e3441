/* utf8.h - characters of UTF-8 (RFC 3629). */
#pragma once

#include <stddef.h>

/* The bytes of the character at the start of a text that is not empty; 0: not UTF-8, as surrogates and overlong forms. */
static inline size_t culet_utf8_bytes(const unsigned char *text, size_t length)
{
    size_t bytes = text[0] < 0x80   ? 1
                   : text[0] < 0xc2 ? 0
                   : text[0] < 0xe0 ? 2
                   : text[0] < 0xf0 ? 3
                   : text[0] < 0xf5 ? 4
                                    : 0;
    unsigned char lowest = text[0] == 0xe0 ? 0xa0 : text[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char highest = text[0] == 0xed ? 0x9f : text[0] == 0xf4 ? 0x8f : 0xbf;

    if (bytes > length || (bytes > 1 && (text[1] < lowest || text[1] > highest)))
        return 0;
    for (size_t i = 2; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return bytes;
}
