#include "escape.h"

#include <stdbool.h>
#include <string.h>

/* The bytes of the character that starts there; 0: not UTF-8, as surrogates and overlong forms, or a control character beyond
 * ASCII. */
static size_t character_bytes(const unsigned char *text, size_t length)
{
    size_t bytes = text[0] < 0x80   ? 1
                   : text[0] < 0xc2 ? 0
                   : text[0] < 0xe0 ? 2
                   : text[0] < 0xf0 ? 3
                   : text[0] < 0xf5 ? 4
                                    : 0;
    unsigned char lowest = text[0] == 0xe0 || text[0] == 0xc2 ? 0xa0 : text[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char highest = text[0] == 0xed ? 0x9f : text[0] == 0xf4 ? 0x8f : 0xbf;

    if (bytes > length || (bytes > 1 && (text[1] < lowest || text[1] > highest)))
        return 0;
    for (size_t i = 2; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return bytes;
}

static bool is_plain(unsigned char byte, char separator)
{
    return byte >= 0x20 && byte != 0x7f && byte != '\\' && (separator == 0 || byte != (unsigned char)separator);
}

size_t culet_profile_escape(char *to, size_t size, const char *from, size_t length, char separator)
{
    static const char digits[] = "0123456789abcdef";
    size_t written = 0, bytes;

    for (size_t at = 0; at < length; at += bytes) {
        unsigned char byte = (unsigned char)from[at];
        bytes = character_bytes((const unsigned char *)from + at, length - at);
        if (bytes > 1 || (bytes == 1 && is_plain(byte, separator))) {
            if (bytes > size - written)
                break;
            memcpy(to + written, from + at, bytes);
            written += bytes;
        } else {
            bytes = 1;
            if (size - written < 4)
                break;
            memcpy(to + written, (char[]){'\\', 'x', digits[byte >> 4], digits[byte & 15]}, 4);
            written += 4;
        }
    }
    return written;
}
