// SPDX-License-Identifier: Apache-2.0
/* What the files behind posegraphs.h share. */
#ifndef VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPHS_INTERNAL_H
#define VXD_SERVER_REGISTRY_POSEGRAPHS_POSEGRAPHS_INTERNAL_H

#include "proto/base/bytes.h"
#include "server/registry/posegraphs/posegraphs.h"

/* posegraph_catalogue.c. Adds a description. A lack of memory shows at the end (vxd_bytes_out). */
void vxd_posegraph_describe(struct vxd_bytes_out *out, const struct vxd_described *graph);

/* errors  DATA_LOSS; FAILED_PRECONDITION  it says what this program does not know */
enum vxd_status vxd_posegraph_read_description(const void *bytes, size_t n_bytes,
                                               struct vxd_described *out,
                                               struct vxd_err *err);

/* Reads the description from a snapshot file that was just opened.
 * errors  DATA_LOSS, FAILED_PRECONDITION, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_posegraph_read_catalogue(struct vxd_snapshot_reader *reader,
                                             struct vxd_described *out,
                                             struct vxd_err *err);

/* Writes the description and the content of a graph that nobody changes meanwhile. Blocking.
 * errors  RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_posegraph_write_snapshot(struct vxd_snapshot_writer *writer,
                                             const struct vxd_described *described,
                                             const struct vxd_posegraph_content *content,
                                             struct vxd_err *err);

/* Gives an empty graph what a snapshot file has. The caller checks the file's end. Blocking.
 * errors  DATA_LOSS, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_posegraph_read_snapshot(struct vxd_snapshot_reader *reader,
                                            struct vxd_posegraph_content *content,
                                            struct vxd_err *err);

/* posegraphs_durable.c. Applies a record, with the same result as at first.
 * errors  DATA_LOSS            damaged, or of another graph
 *         FAILED_PRECONDITION  of newer rules
 *         RESOURCE_EXHAUSTED   no memory: the content is to be thrown away */
enum vxd_status vxd_posegraph_replay(struct vxd_posegraph_content *content,
                                     const struct vxd_journal_record *record,
                                     struct vxd_err *err);

/* posegraphs_durable.c. What the registry of durable things and the table need of pose graphs. */
extern const struct vxd_durable_kind vxd_posegraphs_kind;
extern const struct vxd_durable_calls vxd_posegraphs_durable;
void vxd_posegraphs_log(enum vxd_registry_event event, const char *name,
                        const char *text);

#endif
