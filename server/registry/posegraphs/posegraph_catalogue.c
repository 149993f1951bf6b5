// SPDX-License-Identifier: Apache-2.0
/* Pose graphs as bytes. Numbers are encoded as in bytes.h (base 128), and a text as its length and its
 * bytes.
 *
 *   description   71, 1                      the kind of description, and its layout
 *                 text name, text owner, number max_bytes, number fsync, number journal_max_bytes
 *                 number generation, signed created_unix_ns
 *
 * A snapshot file (snapshot_read.c):
 *   catalogue     number of bytes of the description, and the description
 *   image         records as posegraph_record.c describes them, each behind its length (8 bytes, little
 *                 end first): nodes with the newest poses, edges, priors, keyframes; then the versions
 *                 of the poses, oldest first, which replace those that the nodes came with; then a
 *                 length of 0
 */
#include "server/registry/posegraphs/posegraphs_internal.h"

enum {
    OWNER_KIND = 71,
    LAYOUT = 1,
    MAX_CATALOGUE_BYTES = 1 << 16,
    EDGES_AT_ONCE = 1 << 15
};

/* --- descriptions ----------------------------------------------------------------------------- */

static void put_text(struct vxd_bytes_out *out, const char *text)
{
    size_t n = strlen(text);

    vxd_bytes_put_number(out, n);
    vxd_bytes_put(out, text, n);
}

static void get_text(struct vxd_bytes_in *in, char *out, size_t capacity)
{
    uint64_t n = vxd_bytes_get_number(in);
    const uint8_t *from = n < capacity ? vxd_bytes_get(in, (size_t)n) : NULL;

    out[0] = '\0';
    if (from == NULL) {
        in->is_bad = true;
        return;
    }
    memcpy(out, from, (size_t)n);
    out[n] = '\0';
}

void vxd_posegraph_describe(struct vxd_bytes_out *out, const struct vxd_described *graph)
{
    vxd_bytes_put_number(out, OWNER_KIND);
    vxd_bytes_put_number(out, LAYOUT);
    put_text(out, graph->terms.name);
    put_text(out, graph->terms.owner);
    vxd_bytes_put_number(out, graph->terms.max_bytes);
    vxd_bytes_put_number(out, (uint64_t)graph->terms.fsync);
    vxd_bytes_put_number(out, graph->terms.journal_max_bytes);
    vxd_bytes_put_number(out, graph->generation);
    vxd_bytes_put_signed(out, graph->created_unix_ns);
}

enum vxd_status vxd_posegraph_read_description(const void *bytes, size_t n_bytes,
                                               struct vxd_described *out,
                                               struct vxd_err *err)
{
    struct vxd_bytes_in in = {.bytes = bytes, .n = n_bytes};
    uint64_t kind = vxd_bytes_get_number(&in);
    uint64_t layout = vxd_bytes_get_number(&in);
    uint64_t fsync;

    *out = (struct vxd_described){.generation = 0};
    if (!in.is_bad && kind == OWNER_KIND && layout > LAYOUT) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                        "a pose graph's description has the layout %llu; a newer server "
                        "made it",
                        (unsigned long long)layout);
    }
    get_text(&in, out->terms.name, sizeof out->terms.name);
    get_text(&in, out->terms.owner, sizeof out->terms.owner);
    out->terms.max_bytes = vxd_bytes_get_number(&in);
    fsync = vxd_bytes_get_number(&in);
    out->terms.fsync = (enum vxd_fsync)(fsync <= 2 ? fsync : 0);
    out->terms.journal_max_bytes = vxd_bytes_get_number(&in);
    out->terms.durable = true;
    out->generation = vxd_bytes_get_number(&in);
    out->created_unix_ns = vxd_bytes_get_signed(&in);
    return !in.is_bad && in.at == in.n && kind == OWNER_KIND && layout == LAYOUT &&
                   fsync <= 2 && vxd_is_name(out->terms.name)
               ? VXD_OK
               : vxd_fail(err, VXD_DATA_LOSS, NULL,
                          "a pose graph's description is damaged");
}

/* --- writing a snapshot ------------------------------------------------------------------------ */

static enum vxd_status write_record(struct vxd_snapshot_writer *writer,
                                    const struct vxd_posegraph_record *record,
                                    struct vxd_err *err)
{
    struct vxd_record_bytes bytes = {0};
    uint64_t length;
    enum vxd_status status;

    VXD_TRY(vxd_posegraph_record_encode(record, &bytes, err));
    length = bytes.n_bytes;
    VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_IMAGE, &length, sizeof length, err));
    status =
        vxd_snapshot_write(writer, VXD_SNAPSHOT_IMAGE, bytes.bytes, bytes.n_bytes, err);
out:
    vxd_record_bytes_free(&bytes);
    return status;
}

static enum vxd_status write_nodes(struct vxd_snapshot_writer *writer,
                                   const struct vxd_posegraph_content *content,
                                   struct vxd_err *err)
{
    const struct vxd_posegraph_version *newest = vxd_posegraph_find_version(content, 0);
    struct vxd_posegraph_record record = {.kind = VXD_POSEGRAPH_RECORD_ADD,
                                          .n_nodes = content->n_nodes,
                                          .n_priors = content->n_priors,
                                          .priors = content->priors};
    struct vxd_posegraph_record_node *nodes =
        malloc((content->n_nodes + 1) * sizeof *nodes);
    enum vxd_status status;

    if (nodes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a snapshot");
    }
    for (size_t i = 0; i < content->n_nodes; i++) {
        nodes[i] =
            (struct vxd_posegraph_record_node){.id = content->nodes[i].id,
                                               .T_map_node = newest->poses[i],
                                               .stamp_ns = content->nodes[i].stamp_ns,
                                               .fixed = content->nodes[i].fixed};
    }
    record.nodes = nodes;
    status = write_record(writer, &record, err);
    free(nodes);
    return status;
}

/* In the order in which they were made. */
static enum vxd_status write_keyframes(struct vxd_snapshot_writer *writer,
                                       const struct vxd_posegraph_content *content,
                                       struct vxd_err *err)
{
    uint32_t *nodes = calloc(content->n_keyframes + 1, sizeof *nodes);
    enum vxd_status status = VXD_OK;

    if (nodes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a snapshot");
    }
    for (size_t i = 0; i < content->n_nodes; i++) {
        if (content->nodes[i].keyframe != NULL) {
            nodes[content->nodes[i].keyframe_order] = (uint32_t)i;
        }
    }
    for (size_t k = 0; k < content->n_keyframes; k++) {
        const struct vxd_keyframe *keyframe = content->nodes[nodes[k]].keyframe;
        const struct vxd_posegraph_record_keyframe one = {
            .node = nodes[k],
            .n_points = keyframe->n_points,
            .points = keyframe->points,
            .n_descriptor = keyframe->n_descriptor,
            .descriptor = keyframe->descriptor};
        const struct vxd_posegraph_record record = {
            .kind = VXD_POSEGRAPH_RECORD_ADD, .n_keyframes = 1, .keyframes = &one};

        VXD_TRY(write_record(writer, &record, err));
    }
out:
    free(nodes);
    return status;
}

static enum vxd_status write_content(struct vxd_snapshot_writer *writer,
                                     const struct vxd_posegraph_content *content,
                                     struct vxd_err *err)
{
    const uint64_t end = 0;
    enum vxd_status status;

    if (content->n_nodes > 0) {
        VXD_TRY(write_nodes(writer, content, err));
    }
    for (size_t i = 0; i < content->n_edges; i += EDGES_AT_ONCE) {
        size_t left = content->n_edges - i;
        const struct vxd_posegraph_record record = {
            .kind = VXD_POSEGRAPH_RECORD_ADD,
            .n_edges = left < EDGES_AT_ONCE ? left : EDGES_AT_ONCE,
            .edges = content->edges + i};

        VXD_TRY(write_record(writer, &record, err));
    }
    VXD_TRY(write_keyframes(writer, content, err));
    for (int i = 0; i < content->n_versions; i++) {
        const struct vxd_posegraph_version *version = &content->versions[i];
        const struct vxd_posegraph_record record = {.kind = VXD_POSEGRAPH_RECORD_POSES,
                                                    .unix_ns = version->unix_ns,
                                                    .version = version->version,
                                                    .cost = version->cost,
                                                    .n_poses = version->n,
                                                    .poses = version->poses};

        VXD_TRY(write_record(writer, &record, err));
    }
    status = vxd_snapshot_write(writer, VXD_SNAPSHOT_IMAGE, &end, sizeof end, err);
out:
    return status;
}

enum vxd_status vxd_posegraph_write_snapshot(struct vxd_snapshot_writer *writer,
                                             const struct vxd_described *described,
                                             const struct vxd_posegraph_content *content,
                                             struct vxd_err *err)
{
    struct vxd_bytes_out description = {0};
    struct vxd_bytes_out catalogue = {0};
    enum vxd_status status;

    vxd_posegraph_describe(&description, described);
    vxd_bytes_put_number(&catalogue, description.n);
    vxd_bytes_put(&catalogue, description.bytes, description.n);
    if (description.is_out_of_memory || catalogue.is_out_of_memory) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                         "no memory for a pose graph's description"));
    }
    VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_CATALOGUE, catalogue.bytes,
                               catalogue.n, err));
    status = write_content(writer, content, err);
out:
    free(catalogue.bytes);
    free(description.bytes);
    return status;
}

/* --- reading one -------------------------------------------------------------------------------- */

enum vxd_status vxd_posegraph_read_catalogue(struct vxd_snapshot_reader *reader,
                                             struct vxd_described *out,
                                             struct vxd_err *err)
{
    uint8_t *bytes = malloc(MAX_CATALOGUE_BYTES);
    struct vxd_bytes_in in = {.bytes = bytes};
    const uint8_t *description;
    uint64_t n;
    enum vxd_status status;

    if (bytes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a snapshot");
    }
    VXD_TRY(vxd_snapshot_read(reader, VXD_SNAPSHOT_CATALOGUE, bytes, MAX_CATALOGUE_BYTES,
                              &in.n, err));
    n = vxd_bytes_get_number(&in);
    description = n <= in.n ? vxd_bytes_get(&in, (size_t)n) : NULL;
    if (description == NULL || in.at != in.n) {
        VXD_TRY(
            vxd_fail(err, VXD_DATA_LOSS, NULL, "a pose graph's catalogue is damaged"));
    }
    status = vxd_posegraph_read_description(description, (size_t)n, out, err);
out:
    free(bytes);
    return status;
}

/* Reads the next record; *n_bytes 0: there is none. */
static enum vxd_status read_record(struct vxd_snapshot_reader *reader, uint8_t **bytes,
                                   size_t *n_bytes, struct vxd_err *err)
{
    uint64_t length = 0;
    size_t n_read = 0;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_read(reader, VXD_SNAPSHOT_IMAGE, &length, sizeof length, &n_read,
                              err));
    if (n_read != sizeof length || length > vxd_snapshot_get_size(reader)) {
        VXD_TRY(vxd_fail(err, VXD_DATA_LOSS, NULL, "a pose graph's snapshot is cut off"));
    }
    *n_bytes = (size_t)length;
    *bytes = malloc((size_t)length + 1);
    if (*bytes == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a snapshot"));
    }
    VXD_TRY(vxd_snapshot_read(reader, VXD_SNAPSHOT_IMAGE, *bytes, (size_t)length, &n_read,
                              err));
    if (n_read != length) {
        status = vxd_fail(err, VXD_DATA_LOSS, NULL, "a pose graph's snapshot is cut off");
    }
out:
    return status;
}

enum vxd_status vxd_posegraph_read_snapshot(struct vxd_snapshot_reader *reader,
                                            struct vxd_posegraph_content *content,
                                            struct vxd_err *err)
{
    struct vxd_described described;
    bool has_versions = false;
    size_t n_bytes = 1;
    enum vxd_status status;

    VXD_TRY(vxd_posegraph_read_catalogue(reader, &described, err));
    while (n_bytes > 0) {
        struct vxd_journal_record record = {.rules_version = VXD_POSEGRAPH_RULES_VERSION};
        uint8_t *bytes = NULL;

        status = read_record(reader, &bytes, &n_bytes, err);
        if (status == VXD_OK && n_bytes > 0) {
            if (bytes[0] == VXD_POSEGRAPH_RECORD_POSES && !has_versions) {
                vxd_posegraph_forget_versions(content);
                has_versions = true;
            }
            record.bytes = bytes;
            record.n_bytes = n_bytes;
            status = vxd_posegraph_replay(content, &record, err);
        }
        free(bytes);
        VXD_TRY(status);
    }
out:
    return status;
}
