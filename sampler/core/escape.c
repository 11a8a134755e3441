#include "escape.h"

#include "utf8.h"

#include <stdbool.h>
#include <string.h>

/* Control characters beyond ASCII are the first ones of two bytes. */
static bool is_plain(const unsigned char *text, size_t bytes, char separator)
{
    if (bytes > 1)
        return text[0] != 0xc2 || text[1] >= 0xa0;
    return text[0] >= 0x20 && text[0] != 0x7f && text[0] != '\\' &&
           (separator == 0 || text[0] != (unsigned char)separator);
}

size_t culet_profile_escape(char *to, size_t size, const char *from, size_t length, char separator)
{
    static const char digits[] = "0123456789abcdef";
    size_t written = 0, bytes;

    for (size_t at = 0; at < length; at += bytes) {
        const unsigned char *text = (const unsigned char *)from + at;
        bytes = culet_utf8_bytes(text, length - at);
        if (bytes > 0 && is_plain(text, bytes, separator)) {
            if (bytes > size - written)
                break;
            memcpy(to + written, from + at, bytes);
            written += bytes;
        } else {
            bytes = 1;
            if (size - written < 4)
                break;
            memcpy(to + written, (char[]){'\\', 'x', digits[*text >> 4], digits[*text & 15]}, 4);
            written += 4;
        }
    }
    return written;
}
