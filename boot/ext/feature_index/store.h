/* feature_index/store.h - the index file. It is read whole, not mapped, because truncating a mapped file kills the
 * process, and replaced by rename, so that no process sees a partial file. */
#pragma once

#include "feature_index/serialized.h"

/* Reads a file: a regular one, owned by this user or root, writable by nobody else, complete.
 *
 * Returns NULL and sets `index`, to be freed by culet_store_free; or returns what is wrong. */
const char *culet_store_read(struct culet_index *index, const char *path);

/* Frees an index that was read or built, and clears it. */
void culet_store_free(struct culet_index *index);

/* Replaces a file, completely or not at all, with mode 0400.
 *
 * Returns 0 or an errno. */
int culet_store_write(const char *path, const void *bytes, size_t count);

/* Creates the folders of a file, for this user only. Returns 0 or an errno. */
int culet_store_prepare(const char *path);

/* Locks a file against other writers, waiting up to some milliseconds. On a file system without locks the last writer
 * wins, and every file is complete all the same.
 *
 * Returns a descriptor for culet_store_unlock; CULET_LOCK_BUSY if another process holds the lock; CULET_LOCK_REFUSED
 * and errno if the lock file cannot be created. */
#define CULET_LOCK_BUSY (-1)
#define CULET_LOCK_REFUSED (-2)

int culet_store_lock(const char *path, unsigned milliseconds);
void culet_store_unlock(int lock);
