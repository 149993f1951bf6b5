// SPDX-License-Identifier: Apache-2.0
/* What is pose graphs' own of being durable: the rest is that of all named things
 * (server/registry/named). A record has what was added, or the poses that an optimization found. */
#include "server/observe/log/log.h"
#include "server/registry/posegraphs/posegraphs_internal.h"

enum {
    MAX_CHANGE_BYTES = 240 << 20 /* what the journal takes where nothing else waits */
};

static enum vxd_status make(struct vxd_names *names,
                            const struct vxd_described *described, struct vxd_named **out,
                            struct vxd_err *err)
{
    struct vxd_named_posegraph *graph = NULL;
    enum vxd_status status =
        vxd_named_posegraph_new(names, &described->terms, &graph, err);

    *out = graph != NULL ? &graph->named : NULL;
    return status;
}

static void *get_content(struct vxd_named *named)
{
    return &((struct vxd_named_posegraph *)named)->content;
}

static void clear(struct vxd_queue *queue, void *content)
{
    (void)queue;
    vxd_posegraph_content_clear(content);
}

static enum vxd_status begin(struct vxd_queue *queue,
                             const struct vxd_described *described, bool is_small,
                             void *content, struct vxd_err *err)
{
    (void)described;
    (void)is_small;
    (void)err;
    clear(queue, content);
    return VXD_OK;
}

static enum vxd_status read_snapshot(struct vxd_snapshot_reader *reader,
                                     struct vxd_queue *queue,
                                     const struct vxd_described *described, void *content,
                                     struct vxd_err *err)
{
    (void)described;
    clear(queue, content);
    return vxd_posegraph_read_snapshot(reader, content, err);
}

static enum vxd_status write_snapshot(struct vxd_snapshot_writer *writer,
                                      struct vxd_queue *queue,
                                      const struct vxd_described *described,
                                      const void *content, struct vxd_err *err)
{
    (void)queue;
    return vxd_posegraph_write_snapshot(writer, described, content, err);
}

enum vxd_status vxd_posegraph_replay(struct vxd_posegraph_content *content,
                                     const struct vxd_journal_record *record,
                                     struct vxd_err *err)
{
    struct vxd_posegraph_record_decoded decoded;
    enum vxd_status status = vxd_posegraph_record_decode(
        record->bytes, record->n_bytes, record->rules_version, 0, &decoded, err);

    if (status != VXD_OK) {
        return status;
    }
    status = vxd_posegraph_apply(content, &decoded.record, err);
    vxd_posegraph_record_decoded_free(&decoded);
    if (status == VXD_OK || status == VXD_RESOURCE_EXHAUSTED) {
        return status;
    }
    if (err != NULL) { /* what a graph refuses of its own record is damage */
        err->code = VXD_DATA_LOSS;
    }
    return VXD_DATA_LOSS;
}

static enum vxd_status apply(struct vxd_queue *queue, void *content,
                             const struct vxd_journal_record *record, struct vxd_err *err)
{
    (void)queue;
    return vxd_posegraph_replay(content, record, err);
}

void vxd_posegraphs_log(enum vxd_registry_event event, const char *name, const char *text)
{
    switch (event) {
    case VXD_REGISTRY_RECOVERING:
        vxd_log(VXD_LOG_INFO, "bringing back pose graphs", "done", text, "posegraph",
                name);
        break;
    case VXD_REGISTRY_RECOVERED:
        vxd_log(VXD_LOG_INFO, "posegraphs are back", "families", text);
        break;
    case VXD_REGISTRY_SAVED:
        vxd_log(VXD_LOG_INFO, "snapshot written", "posegraph", name, "seconds", text);
        break;
    case VXD_REGISTRY_NOT_SAVED:
        vxd_log(VXD_LOG_ERROR, "no snapshot was written", "posegraph", name, "error",
                text);
        break;
    case VXD_REGISTRY_MADE:
        vxd_log(VXD_LOG_INFO, "durable pose graph made", "posegraph", name, "by", text);
        break;
    case VXD_REGISTRY_BACK:
        vxd_log(VXD_LOG_INFO, "a pose graph was brought back from the disk", "posegraph",
                name);
        break;
    case VXD_REGISTRY_NOT_BACK:
        vxd_log(VXD_LOG_ERROR, "a pose graph could not be brought back from the disk",
                "posegraph", name, "error", text);
        break;
    case VXD_REGISTRY_NOT_RECOVERED:
        vxd_log(VXD_LOG_ERROR, "a pose graph cannot be brought back", "posegraph", name,
                "reason", text);
        break;
    case VXD_REGISTRY_LOSSY:
        vxd_log(VXD_LOG_ERROR,
                "a pose graph has lost changes; its generation is another one",
                "posegraph", name, "reason", text);
        break;
    case VXD_REGISTRY_BAD_SNAPSHOT:
        vxd_log(VXD_LOG_ERROR, "a snapshot is no good, the one before it is tried",
                "posegraph", name, "reason", text);
        break;
    case VXD_REGISTRY_EXPIRED: /* they have no ttl */
    default:
        break;
    }
}

const struct vxd_durable_kind vxd_posegraphs_kind = {.noun = "posegraph",
                                                     .prefix = VXD_POSEGRAPH_FAMILIES,
                                                     .log = vxd_posegraphs_log,
                                                     .recover = vxd_names_recover,
                                                     .save = vxd_names_save};

const struct vxd_durable_calls vxd_posegraphs_durable = {
    .kind = &vxd_posegraphs_kind,
    .rules_version = VXD_POSEGRAPH_RULES_VERSION,
    .max_change_bytes = MAX_CHANGE_BYTES,
    .described_bytes = sizeof(struct vxd_described),
    .content_bytes = sizeof(struct vxd_posegraph_content),
    .put_description = vxd_posegraph_describe,
    .read_description = vxd_posegraph_read_description,
    .read_catalogue = vxd_posegraph_read_catalogue,
    .make = make,
    .content = get_content,
    .begin = begin,
    .read = read_snapshot,
    .write = write_snapshot,
    .apply = apply,
    .clear = clear};
