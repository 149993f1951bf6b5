// SPDX-License-Identifier: Apache-2.0
/* Snapshot files: what a family is at one sequence number of its journal. snapshot_read.c
 * describes their bytes. A file is written beside its place, synced, renamed and the directory
 * synced, so that at any moment it is there as a whole or not at all; each chunk has a CRC that
 * goes on from the header's, so that a chunk of another file is none of this one. What the chunks
 * hold is the owner's: bytes of the catalogue and of an image of the engine. */
#ifndef VXD_SERVER_DURABLE_SNAPSHOT_SNAPSHOT_H
#define VXD_SERVER_DURABLE_SNAPSHOT_SNAPSHOT_H

#include "server/durable/data_dir/data_dir.h"

enum {
    VXD_SNAPSHOT_CHUNK_BYTES = 1 << 20, /* at most */
    VXD_SNAPSHOT_NAME_BYTES = 64,
    VXD_SNAPSHOTS_KEPT = 2 /* a family */
};

/* Kinds of chunks, in the order in which they stand in a file. */
enum vxd_snapshot_kind {
    VXD_SNAPSHOT_CATALOGUE = 1, /* heads, versions: what names the image's roots */
    VXD_SNAPSHOT_IMAGE = 2,     /* the engine's */
    VXD_SNAPSHOT_LOG_ODDS = 3,  /* of scenes that have them */
    VXD_SNAPSHOT_UPKEEP = 4,    /* pins, and times of decays, where there are any */
    VXD_SNAPSHOT_END = 255      /* written by vxd_snapshot_finish */
};

struct vxd_snapshot_head {
    uint32_t family;
    char name[VXD_SNAPSHOT_NAME_BYTES]; /* the family's */
    uint64_t epoch;
    uint64_t sequence; /* all records up to it are in */
    uint32_t rules_version;
    int64_t unix_ns;
};

struct vxd_snapshot_info {
    struct vxd_snapshot_head head;
    uint64_t n_bytes; /* of the file */
};

/* DIR/snapshots/FAMILY.SEQUENCE.vxs with `end` behind it ("", ".new" while it is written,
 * ".bad"). */
void vxd_snapshot_path(const struct vxd_data_dir *dir, uint32_t family, uint64_t sequence,
                       const char *end, char out[VXD_DURABLE_PATH_BYTES]);

/* True where a name is that of a snapshot. */
bool vxd_snapshot_parse_name(const char *name, uint32_t *family, uint64_t *sequence);

struct vxd_journal;
struct vxd_snapshot_writer;
struct vxd_snapshot_reader;

/* Begins a file. One thread a writer; writers of different families beside each other are fine.
 * errors  INVALID_ARGUMENT (name), RESOURCE_EXHAUSTED (memory, disk full), UNAVAILABLE */
enum vxd_status vxd_snapshot_begin(const struct vxd_data_dir *dir,
                                   const struct vxd_snapshot_head *head,
                                   struct vxd_snapshot_writer **out, struct vxd_err *err);

/* Goes on with the bytes of a kind; a kind may have as many as it likes, in as many calls. After
 * a failure only vxd_snapshot_abandon is left.
 * errors  INVALID_ARGUMENT (a kind below the last one), RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_snapshot_write(struct vxd_snapshot_writer *writer,
                                   enum vxd_snapshot_kind kind, const void *bytes,
                                   size_t n_bytes, struct vxd_err *err);

/* Ends the file and puts it in its place; then removes all but the newest VXD_SNAPSHOTS_KEPT of
 * the family. The writer is freed, after a failure too (then an older file of the same sequence
 * stays; only when the directory's own sync failed may the new one be there).
 *
 * out     out          may be NULL
 *         keep_from    the lowest sequence of the snapshots that are left, for
 *                      vxd_journal_snapshot_taken: records after it are still needed */
enum vxd_status vxd_snapshot_finish(struct vxd_snapshot_writer *take_writer,
                                    struct vxd_snapshot_info *out, uint64_t *keep_from,
                                    struct vxd_err *err);

/* The same, and lets the journal drop the records that are no longer needed. Waits.
 * errors  of the journal too: then the file is there, and the records stay */
enum vxd_status vxd_snapshot_conclude(struct vxd_snapshot_writer *take_writer,
                                      struct vxd_journal *journal, struct vxd_err *err);

/* Removes what was begun. NULL is fine. */
void vxd_snapshot_abandon(struct vxd_snapshot_writer *take_writer);

/* A family's files, newest first, as their names say. *out is the caller's to free.
 * errors  as vxd_file_fail; RESOURCE_EXHAUSTED */
enum vxd_status vxd_snapshot_list(const struct vxd_data_dir *dir, uint32_t family,
                                  uint64_t **sequences, size_t *n, struct vxd_err *err);

/* Removes all of a family that was dropped. */
enum vxd_status vxd_snapshot_remove_all(const struct vxd_data_dir *dir, uint32_t family,
                                        struct vxd_err *err);

/* Opens a file and checks its header, not yet its chunks.
 * errors  NOT_FOUND, DATA_LOSS (says what and at which byte), UNAVAILABLE, RESOURCE_EXHAUSTED,
 *         FAILED_PRECONDITION (written by a newer server, in layout or rules) */
enum vxd_status vxd_snapshot_open(const struct vxd_data_dir *dir, uint32_t family,
                                  uint64_t sequence, struct vxd_snapshot_reader **out,
                                  struct vxd_err *err);

const struct vxd_snapshot_head *
vxd_snapshot_get_head(const struct vxd_snapshot_reader *reader);

/* Bytes of the file: more than it has of any kind. */
uint64_t vxd_snapshot_get_size(const struct vxd_snapshot_reader *reader);

/* The next bytes of a kind, each chunk checked before any byte of it is given. Kinds are read in
 * their order; going on to the next one before the end of one is an error.
 *
 * out     n_read  as many as asked for, fewer only at the end of the kind
 * errors  DATA_LOSS, UNAVAILABLE; INVALID_ARGUMENT (the order) */
enum vxd_status vxd_snapshot_read(struct vxd_snapshot_reader *reader,
                                  enum vxd_snapshot_kind kind, void *to, size_t n_bytes,
                                  size_t *n_read, struct vxd_err *err);

/* Checks that all was read and that the end is right; without it a file is not known to be
 * whole.
 * errors  DATA_LOSS, UNAVAILABLE */
enum vxd_status vxd_snapshot_read_end(struct vxd_snapshot_reader *reader,
                                      struct vxd_err *err);

/* Reads what is left, whatever kinds, and the end.
 * errors  as above */
enum vxd_status vxd_snapshot_skip_to_end(struct vxd_snapshot_reader *reader,
                                         struct vxd_err *err);

/* NULL is fine. */
void vxd_snapshot_close(struct vxd_snapshot_reader *reader);

#endif
