/* glibc_chunk.h - a chunk of glibc's heap (malloc/malloc.c, struct malloc_chunk; glibc 2.26 to 2.43), for readers of
 * another process's memory.
 *
 *   previous size   8 bytes; user data of the chunk before while that one is in use
 *   size            8 bytes; the low three bits are flags
 *   user data       in a free chunk: forward and backward link, and from LARGE_BYTES on two more links */
#pragma once

#include <stdint.h>

/* Flags of the size. */
#define GLIBC_CHUNK_PREV_INUSE UINT64_C(1)
#define GLIBC_CHUNK_MMAPPED UINT64_C(2)
#define GLIBC_CHUNK_NON_MAIN UINT64_C(4)
#define GLIBC_CHUNK_FLAGS UINT64_C(7)

/* Bytes. */
#define GLIBC_CHUNK_HEADER_BYTES 16u
#define GLIBC_CHUNK_LINKS_BYTES 16u
#define GLIBC_CHUNK_LARGE_LINKS_BYTES 32u
#define GLIBC_CHUNK_LARGE_BYTES 1024u /* the smallest chunk of a large bin */
#define GLIBC_CHUNK_LEAST_BYTES 32u   /* MINSIZE */
/* sizeof (struct malloc_chunk) */
#define GLIBC_CHUNK_STRUCT_BYTES (GLIBC_CHUNK_HEADER_BYTES + GLIBC_CHUNK_LARGE_LINKS_BYTES)
