/* Files in the small: a private map of a whole file, and a write that replaces a file at once or not at all. */
#ifndef TMI_FILES_H
#define TMI_FILES_H

#include <stdatomic.h>

#include "base/fail.h"

/* Bytes that several tensors share: a map of a file, or the caller's memory. Freed with the last reference. */
typedef struct tmi_mapping {
    _Atomic int64_t refs;
    char *data;
    size_t nbytes;
    bool is_file;                 /* munmap at the end */
    void (*deleter)(void *ctx);   /* of the caller's memory; may be NULL */
    void *ctx;
} tmi_mapping;

/* Private and writable: writes stay in this process. An empty file maps to nbytes 0. TM_NOT_FOUND, TM_IO or TM_NOMEM. */
tm_status tmi_map_file(const char *path, tmi_mapping **out);
tm_status tmi_map_memory(void *data, size_t nbytes, void (*deleter)(void *), void *ctx, tmi_mapping **out);
tmi_mapping *tmi_mapping_retain(tmi_mapping *m);
void tmi_mapping_release(void *m);   /* void *: fits a storage's deleter */

/* A file in the making, beside `path`. Commit makes it the file of that name, durably; abandon removes it. Exactly one of them ends it. */
typedef struct tmi_writer {
    int fd;
    char *path, *temp;   /* where it will stand, and where it stands */
    size_t temp_cap;
} tmi_writer;
tm_status tmi_writer_open(tmi_writer *w, const char *path);
tm_status tmi_writer_put(tmi_writer *w, const void *data, size_t nbytes);
tm_status tmi_writer_commit(tmi_writer *w);   /* on failure the old file stands and the new one is gone */
void tmi_writer_abandon(tmi_writer *w);

#endif
