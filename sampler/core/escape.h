/* escape.h - texts in the form of the stream (profile.h). */
#pragma once

#include <stddef.h>

/* Writes a text with control characters, backslashes, `separator` (0: none) and bytes that are not UTF-8 as \xNN. Returns its
 * length; at most `size` bytes are written, and no part of a character or an escape. */
size_t culet_profile_escape(char *to, size_t size, const char *from, size_t length, char separator);
