// SPDX-License-Identifier: Apache-2.0
/* The archive: every transaction of a journal, copied into files of a folder of its own as the
 * journal grows, so that a backup and the files after it make a data directory as of any moment
 * between (restore.h).
 *
 * What waits is in the journal's spool (journal.h), so no crash leaves a hole, and a disk that
 * does not take the archive holds up nobody: what waits grows, and where it comes to its limit it is
 * given up, which the log, a metric and an alert report. Nobody but the owner removes files. */
#ifndef VXD_SERVER_DURABLE_ARCHIVE_ARCHIVE_H
#define VXD_SERVER_DURABLE_ARCHIVE_ARCHIVE_H

#include "server/durable/journal/journal.h"

struct vxd_archive;

struct vxd_archive_options {
    const char *folder; /* made where it is missing; its parent must exist */
    uint32_t
        seconds; /* what waits is archived when the first of it has waited as long, or */
    uint64_t n_bytes;  /* is as large; 0 = 16 MiB */
    uint32_t tick_ms;  /* between looks at the spool; 0 = 1000 */
    uint32_t retry_ms; /* after a failure; 0 = 5000 */
};

/* Starts the thread that copies. Directory and journal, which has a spool, are borrowed until the
 * stop; the options' text is copied. A folder that cannot be used is a failure that the thread
 * reports and tries again.
 * errors  INVALID_ARGUMENT (archive_dir: too long), RESOURCE_EXHAUSTED */
enum vxd_status vxd_archive_start(const struct vxd_file_ops *ops,
                                  struct vxd_journal *journal,
                                  const struct vxd_archive_options *options,
                                  struct vxd_archive **out, struct vxd_err *err);

/* Copies what waits and ends; what could not be copied waits in the journal's directory for the next
 * start. To be called before the journal is closed. NULL is fine. */
void vxd_archive_stop(struct vxd_archive *take_archive);

struct vxd_archive_stats {
    bool is_available;       /* the last attempt succeeded */
    char reason[200];        /* why not */
    uint64_t n_transactions; /* copied by this run, */
    uint64_t n_segments;     /* in as many files, */
    uint64_t n_segment_bytes;
    uint64_t n_failed;  /* attempts */
    uint64_t n_waiting; /* transactions */
    uint64_t n_waiting_bytes;
    uint64_t n_breaks; /* so often what waited was given up */
};

void vxd_archive_get_stats(struct vxd_archive *archive, struct vxd_archive_stats *out);

/* Segments --------------------------------------------------------------------------------- */

/* A file LINE.FIRST.vxa, both as 16 hexadecimal digits (segment.c describes it). */
struct vxd_segment_head {
    uint64_t line;   /* struct vxd_spool */
    uint64_t first;  /* the number of its first transaction, */
    uint64_t n;      /* and how many there are, at least 1 */
    int64_t from_ns; /* when the first and the last were committed, Unix time */
    int64_t to_ns;
    uint64_t n_bytes; /* of the file */
};

enum {
    VXD_SEGMENT_NAME_BYTES = 38 /* with the zero */
};

void vxd_segment_name(uint64_t line, uint64_t first, char out[VXD_SEGMENT_NAME_BYTES]);
bool vxd_segment_parse_name(const char *name, uint64_t *line, uint64_t *first);

struct vxd_segment_writer;

/* Begins a file of a folder, beside its name. */
enum vxd_status vxd_segment_begin(const struct vxd_file_ops *ops, const char *folder,
                                  uint64_t line, uint64_t first,
                                  struct vxd_segment_writer **out, struct vxd_err *err);
/* Adds the next transaction, a row of the spool. */
enum vxd_status vxd_segment_add(struct vxd_segment_writer *writer, const void *bytes,
                                size_t n_bytes, struct vxd_err *err);
/* How large it is so far. */
uint64_t vxd_segment_size(const struct vxd_segment_writer *writer);
/* Syncs it and gives it its name; freed in any case, and on failure nothing is left as far as can
 * be. */
enum vxd_status vxd_segment_conclude(struct vxd_segment_writer *take_writer,
                                     struct vxd_segment_head *out, struct vxd_err *err);
void vxd_segment_abandon(struct vxd_segment_writer *take_writer);

/* Reads what a file says of itself; errors as of vxd_segment_read. */
enum vxd_status vxd_segment_read_head(const struct vxd_file_ops *ops, const char *folder,
                                      const char *name, struct vxd_segment_head *head,
                                      struct vxd_err *err);

/* Reads a file of a folder and calls `each` for every transaction; what is called has been checked,
 * what comes after it in the file not yet. A call back that fails ends the reading.
 * errors  DATA_LOSS            it is damaged: says which file and where
 *         FAILED_PRECONDITION  a newer server wrote it
 *         NOT_FOUND, UNAVAILABLE, RESOURCE_EXHAUSTED */
enum vxd_status
vxd_segment_read(const struct vxd_file_ops *ops, const char *folder, const char *name,
                 struct vxd_segment_head *head,
                 enum vxd_status (*each)(void *user, uint64_t number, const void *bytes,
                                         size_t n_bytes, struct vxd_err *err),
                 void *user, struct vxd_err *err);

#endif
