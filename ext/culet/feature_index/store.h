/*
 * feature_index/store.h - the file that an index is kept in: read as a whole, and not mapped, because a file that is cut
 * off while it is mapped ends the process; written beside and renamed, so that none sees half of one.
 */
#ifndef CULET_FEATURE_INDEX_STORE_H
#define CULET_FEATURE_INDEX_STORE_H

#include "feature_index/serialized.h"

/*
 * Reads a file. It must be a regular file of this user or of root that nobody else may write, and whole.
 *
 * Returns NULL and sets `image`, to be given up by culet_store_free; or says what is wrong.
 */
const char *culet_store_read(struct culet_index *index, const char *path, const char *native_extension);
void culet_store_free(struct culet_index *index);

/*
 * Writes a file whole or not at all. It gets the mode 0400: it is replaced, never changed.
 *
 * Returns 0, or an errno.
 */
int culet_store_write(const char *path, const void *bytes, size_t count);

/* Makes the folders that a file needs, for this user alone. Returns 0, or an errno. */
int culet_store_prepare(const char *path);

/*
 * Takes the lock of a file's writers, waiting for up to so long for another process. A file system without locks has
 * none to wait for: the last writer wins, and every file is whole all the same.
 *
 * Returns a descriptor for culet_store_unlock; or CULET_LOCK_BUSY where another process has it for longer than that, or
 * CULET_LOCK_REFUSED where its file cannot be made, as errno tells.
 */
#define CULET_LOCK_BUSY (-1)
#define CULET_LOCK_REFUSED (-2)

int culet_store_lock(const char *path, unsigned milliseconds);
void culet_store_unlock(int lock);

#endif
