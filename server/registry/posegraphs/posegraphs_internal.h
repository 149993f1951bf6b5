// SPDX-License-Identifier: Apache-2.0
/* What the files behind posegraphs.h share. */
#ifndef VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPHS_INTERNAL_H
#define VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPHS_INTERNAL_H

#include <pthread.h>

#include "proto/base/bytes.h"
#include "server/registry/posegraphs/posegraphs.h"
#include "server/registry/registry.h"

struct vxd_posegraphs {
    struct vxd_named_posegraph *first; /* by name */
    struct vxd_named_posegraph
        *unnamed;                  /* not yet published, or removed and still held */
    struct vxd_registry *registry; /* borrowed; has the journal */
    struct vxd_auth *auth;         /* borrowed; has the quotas */
    uint64_t limit_bytes;
    uint64_t n_made;
    bool is_recovering; /* limits do not count, so that all on the disk comes back */
    _Atomic size_t n_posegraphs;
    _Atomic size_t n_durable;
    _Atomic uint64_t n_bytes;
    pthread_mutex_t mutex;                                     /* of the runs */
    struct vxd_posegraph_run runs[VXD_POSEGRAPHS_MAX_RUNNING]; /* name "": free */
};

/* What the journal's row says of a graph. */
struct vxd_posegraph_described {
    struct vxd_posegraph_terms terms;
    uint64_t generation;
    int64_t created_unix_ns;
};

/* posegraph_catalogue.c. Adds a description. A lack of memory shows at the end (vxd_bytes_out). */
void vxd_posegraph_describe(struct vxd_bytes_out *out,
                            const struct vxd_posegraph_described *graph);

/* errors  DATA_LOSS; FAILED_PRECONDITION  it says what this program does not know */
enum vxd_status vxd_posegraph_read_description(const void *bytes, size_t n_bytes,
                                               struct vxd_posegraph_described *out,
                                               struct vxd_err *err);

/* Reads the description from a snapshot file that was just opened.
 * errors  DATA_LOSS, FAILED_PRECONDITION, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_posegraph_read_catalogue(struct vxd_snapshot_reader *reader,
                                             struct vxd_posegraph_described *out,
                                             struct vxd_err *err);

/* Writes the description and the content of a graph that nobody changes meanwhile. Blocking.
 * errors  RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_posegraph_write_snapshot(
    struct vxd_snapshot_writer *writer, const struct vxd_posegraph_described *described,
    const struct vxd_posegraph_content *content, struct vxd_err *err);

/* Gives an empty graph what a snapshot file has. The caller checks the file's end. Blocking.
 * errors  DATA_LOSS, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_posegraph_read_snapshot(struct vxd_snapshot_reader *reader,
                                            struct vxd_posegraph_content *content,
                                            struct vxd_err *err);

/* posegraphs_replay.c. Applies a record, with the same result as at first.
 * errors  DATA_LOSS            damaged, or of another graph
 *         FAILED_PRECONDITION  of newer rules
 *         RESOURCE_EXHAUSTED   no memory: the content is to be thrown away */
enum vxd_status vxd_posegraph_replay(struct vxd_posegraph_content *content,
                                     const struct vxd_journal_record *record,
                                     struct vxd_err *err);

/* posegraphs_replay.c. Makes a graph as the disk has it up to a sequence number; see
 * vxd_registry_rebuild. */
enum vxd_status vxd_posegraph_bring_back(struct vxd_journal *journal,
                                         const struct vxd_data_dir *dir, uint32_t family,
                                         const char *name, uint64_t sequence,
                                         struct vxd_posegraph_content *out,
                                         struct vxd_err *err);

/* posegraphs_recover.c. What the registry of durable things needs of pose graphs. */
extern const struct vxd_durable_kind vxd_posegraphs_kind;

/* posegraphs_replay.c. Writes a graph's snapshot file.
 * errors  as save of struct vxd_durable_kind */
enum vxd_status vxd_posegraphs_save(void *owner, struct vxd_registry_save *save,
                                    struct vxd_err *err);

/* posegraphs_journal.c. Fills in what the journal's row says of a graph. */
void vxd_posegraph_get_description(const struct vxd_named_posegraph *graph,
                                   struct vxd_posegraph_described *out);

#endif
