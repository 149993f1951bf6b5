// SPDX-License-Identifier: Apache-2.0
/* Makes durable pose graphs from their records: at a start, for snapshot files, and after a change that
 * the disk did not take. Snapshot files are written on the registry's thread, from a graph of their own:
 * the last snapshot and the records after it. */
#include <stdlib.h>
#include <string.h>

#include "server/observe/log/log.h"
#include "server/registry/posegraphs/posegraphs_internal.h"

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

/* A graph that is being made of its snapshot and its records. */
struct rebuilt {
    const char *name;
    struct vxd_posegraph_content *content;
};

static enum vxd_status begin(void *user, struct vxd_err *err)
{
    const struct rebuilt *rebuilt = user;

    (void)err;
    vxd_posegraph_content_clear(rebuilt->content);
    return VXD_OK;
}

static enum vxd_status load(void *user, struct vxd_snapshot_reader *reader,
                            struct vxd_err *err)
{
    const struct rebuilt *rebuilt = user;

    vxd_posegraph_content_clear(rebuilt->content);
    return vxd_posegraph_read_snapshot(reader, rebuilt->content, err);
}

static void discard(void *user, const struct vxd_err *why)
{
    const struct rebuilt *rebuilt = user;

    vxd_posegraph_content_clear(rebuilt->content);
    vxd_log(VXD_LOG_ERROR, "a snapshot is no good, the one before it is tried",
            "posegraph", rebuilt->name, "reason", why->message);
}

static enum vxd_status apply(void *user, const struct vxd_journal_record *record,
                             struct vxd_err *err)
{
    const struct rebuilt *rebuilt = user;

    return vxd_posegraph_replay(rebuilt->content, record, err);
}

enum vxd_status vxd_posegraph_bring_back(struct vxd_journal *journal,
                                         const struct vxd_data_dir *dir, uint32_t family,
                                         const char *name, uint64_t sequence,
                                         struct vxd_posegraph_content *out,
                                         struct vxd_err *err)
{
    struct rebuilt rebuilt = {.name = name, .content = out};
    const struct vxd_rebuilder rebuild = {.user = &rebuilt,
                                          .begin = begin,
                                          .load = load,
                                          .discard = discard,
                                          .apply = apply};
    enum vxd_status status =
        vxd_registry_rebuild(journal, dir, family, sequence, &rebuild, err);

    if (status != VXD_OK) {
        vxd_posegraph_content_clear(out);
    }
    return status;
}

/* --- snapshot files ----------------------------------------------------------------------------- */

/* A graph as its snapshot file will have it. */
struct capture {
    struct vxd_posegraph_described described;
    struct vxd_posegraph_content content;
};

static enum vxd_status write_file(void *user, struct vxd_snapshot_writer *writer,
                                  struct vxd_err *err)
{
    struct capture *capture = user;

    return vxd_posegraph_write_snapshot(writer, &capture->described, &capture->content,
                                        err);
}

static enum vxd_status save_capture(struct vxd_registry_save *save,
                                    struct capture *capture, struct vxd_err *err)
{
    struct vxd_journal *journal = vxd_registry_get_journal(save->registry);
    struct vxd_journal_state state;
    enum vxd_status status;

    VXD_TRY(vxd_posegraph_read_description(save->row->spec, save->row->n_spec_bytes,
                                           &capture->described, err));
    VXD_TRY(vxd_journal_get_state(journal, save->row->id, &state, err));
    save->head.sequence = state.last_sequence;
    save->head.rules_version = VXD_POSEGRAPH_RULES_VERSION;
    VXD_TRY(vxd_posegraph_bring_back(journal, vxd_registry_get_data_dir(save->registry),
                                     save->row->id, capture->described.terms.name,
                                     state.last_sequence, &capture->content, err));
    status = vxd_registry_write_snapshot(save, write_file, capture, err);
out:
    vxd_posegraph_content_clear(&capture->content);
    return status;
}

enum vxd_status vxd_posegraphs_save(void *owner, struct vxd_registry_save *save,
                                    struct vxd_err *err)
{
    struct capture *capture = calloc(1, sizeof *capture);
    enum vxd_status status = capture != NULL ? save_capture(save, capture, err)
                                             : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                                                        "no memory for a snapshot");

    (void)owner;
    free(capture);
    return status;
}
