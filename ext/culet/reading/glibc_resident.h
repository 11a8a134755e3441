/* reading/glibc_resident.h - how much of glibc's arenas is resident, which mallinfo2 does not tell. */
#pragma once

#include <stdint.h>

/* Resident bytes of the arenas of this process, by /proc/self/maps and /proc/self/pagemap (proc(5)). arena_bytes: what
 * mallinfo2 says they have; if the arenas found differ from it, the answer is CULET_UNKNOWN. In any thread. */
uint64_t culet_glibc_resident(uint64_t arena_bytes);
