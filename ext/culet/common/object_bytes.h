/* common/object_bytes.h - how many bytes an object of Ruby's heap has, and where. */
#pragma once

#include <ruby.h>
#include <ruby/version.h>

#include <stdbool.h>
#include <stddef.h>

struct culet_object_bytes {
    size_t slot;
    size_t malloc;    /* beyond the slot, in blocks of malloc, as memsize says */
    size_t transient; /* beyond the slot, in the transient heap */
    size_t vm_stack;  /* of a thread: on its native stack */
    int measured;     /* 0: its type or its extension has no size */
};

/* Learns what Ruby has for it. Before the first call of culet_object_bytes. May raise. */
void culet_object_bytes_prepare(void);

/* The bytes of an object in a slot. An extension's function may be called. */
struct culet_object_bytes culet_object_bytes(VALUE object, size_t slot_bytes);

/* The name of the type of data; "": it is none, or its type has no name. */
const char *culet_data_type_name(VALUE object);

/* Whether it is a Thread, alive or not. */
bool culet_is_thread(VALUE object);

/* ---- the transient heap ----
 *
 * The buffers of young arrays, hashes, objects and structs on Ruby up to 3.2. They pass no malloc: the whole heap is one
 * mapping, on Ruby 3.2 one block of malloc. A collection copies those that are left into blocks of malloc, as deferred
 * work, whose stack says nothing of the object. */

/* Whether malloc counts the transient heap as memory in use. */
#define CULET_MALLOC_HAS_TRANSIENT (RUBY_API_VERSION_MAJOR > 3 || RUBY_API_VERSION_MINOR >= 2)

/* Whether there is such a heap, and the bytes in it can be told. */
bool culet_transient_exists(void);

/* The bytes that an object has there. */
size_t culet_transient_bytes(VALUE object);
