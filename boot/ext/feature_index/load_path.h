/* feature_index/load_path.h - the folders of the load path and their state in the index; reads folders that the index
 * lacks. Of what is here, only resolver.c calls more than culet_load_path_set. */
#pragma once

#include "feature_index/serialized.h"

/* A changed folder is read again at once, then after this time, which then doubles up to the maximum. */
#define CULET_LOAD_PATH_RETRY_MS 2500
#define CULET_LOAD_PATH_MAX_RETRY_MS (1 << 24)

enum entry_state {
    ENTRY_INDEXED,
    ENTRY_PROBED, /* not up to date in the index: looked up by stat(2) */
    ENTRY_ABSENT, /* does not exist */
    ENTRY_OPAQUE  /* unknown to the index: the lookup stops here, and Ruby searches the rest */
};

struct entry {
    char *written; /* as in the load path; NULL: opaque */
    char *path;    /* real path; `written` if the folder does not exist */
    enum entry_state state;
    uint32_t root;
    int missing;       /* not in the index, or changed since */
    int changed_below; /* a subfolder changed */
    uint32_t checked;  /* when it was last found unchanged */
    struct culet_stamp stamp;
};

struct culet_resolver {
    char *file;
    struct culet_index index;
    int file_read;
    struct entry *entries;
    size_t count;
    size_t first_opaque; /* index of the first opaque entry; count: none */
    size_t probed;
    uint32_t *entry_of_root; /* per root: number of its entry + 1, or 0 */
    uint32_t *checked;       /* per stamp: when it was last found right */
    uint32_t retry;          /* when to read folders again; 0: never */
    uint32_t backoff;        /* milliseconds */
    uint32_t builds;
    char problem[512];
    int problem_reported;
};

/* Whether a folder of the index still has its stamp; sets `now` to its present one. */
int culet_load_path_folder_unchanged(const struct culet_index *index, const struct culet_node *node, const char *path,
                                     struct culet_stamp *now);

/* Notes that an entry's folder has changed since it was read. */
void culet_load_path_distrust(struct culet_resolver *resolver, struct entry *entry);

/* A folder of the load path as written there. */
struct culet_load_path_entry {
    const char *path; /* absolute; NULL: the lookup stops at this entry */
    size_t length;
};

/* Sets the load path, and reads the folders that the index lacks. */
void culet_load_path_set(struct culet_resolver *resolver, const struct culet_load_path_entry *entries, size_t count);

/* Determines the state of all entries, and reads the folders that the index lacks. */
void culet_load_path_refresh(struct culet_resolver *resolver);
