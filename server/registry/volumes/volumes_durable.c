// SPDX-License-Identifier: Apache-2.0
/* What is volumes' own of being durable: the rest is that of all named things (server/registry/named). */
#include "server/durable/record/record.h"
#include "server/observe/log/log.h"
#include "server/registry/volumes/volumes_internal.h"

static const struct vxd_volume_described *
as_described(const struct vxd_described *described)
{
    return (const struct vxd_volume_described *)described;
}

/* --- descriptions -------------------------------------------------------------------------------- */

static void describe(const struct vxd_named *named, struct vxd_described *out)
{
    ((struct vxd_volume_described *)out)->spec =
        ((const struct vxd_named_volume *)named)->spec;
}

static void put_description(struct vxd_bytes_out *out,
                            const struct vxd_described *described)
{
    vxd_volume_describe(out, as_described(described));
}

static enum vxd_status read_description(const void *bytes, size_t n_bytes,
                                        struct vxd_described *out, struct vxd_err *err)
{
    return vxd_volume_read_description(bytes, n_bytes, (struct vxd_volume_described *)out,
                                       err);
}

static enum vxd_status read_catalogue(struct vxd_snapshot_reader *reader,
                                      struct vxd_described *out, struct vxd_err *err)
{
    return vxd_volume_read_catalogue(reader, (struct vxd_volume_described *)out, err);
}

/* --- volumes ------------------------------------------------------------------------------------- */

static enum vxd_status make(struct vxd_names *names,
                            const struct vxd_described *described, struct vxd_named **out,
                            struct vxd_err *err)
{
    struct vxd_named_volume *volume = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_named_volume_new(names, vxd_names_queue(names), &described->terms,
                                 &as_described(described)->spec, NULL, &volume, err));
    vxd_volume_begin_version(volume->state.volume, described->generation);
    *out = &volume->named;
out:
    return status;
}

static void *get_content(struct vxd_named *named)
{
    return &((struct vxd_named_volume *)named)->state;
}

static enum vxd_status settle(struct vxd_named *named, struct vxd_err *err)
{
    (void)err;
    vxd_volume_forget_fields(named);
    vxd_volume_renew_order((struct vxd_named_volume *)named);
    return VXD_OK;
}

/* Its stamps go on from the generation. */
static void renew(struct vxd_named *named, uint64_t now_unix_ns)
{
    (void)now_unix_ns;
    vxd_volume_begin_version(((struct vxd_named_volume *)named)->state.volume,
                             named->generation);
}

/* --- blocks -------------------------------------------------------------------------------------- */

static enum vxd_status begin(struct vxd_queue *queue,
                             const struct vxd_described *described, bool is_small,
                             void *content, struct vxd_err *err)
{
    struct vxd_volume_state *state = content;
    struct vxd_volume_spec spec = as_described(described)->spec;
    enum vxd_status status;

    *state = (struct vxd_volume_state){0};
    spec.capacity = is_small ? 0 : spec.capacity;
    VXD_TRY(vxd_volume_create(queue, &spec, &state->volume, err));
    vxd_volume_begin_version(state->volume, described->generation);
out:
    return vxd_volume_as_damage(status, err);
}

static enum vxd_status read_snapshot(struct vxd_snapshot_reader *reader,
                                     struct vxd_queue *queue,
                                     const struct vxd_described *described, void *content,
                                     struct vxd_err *err)
{
    enum vxd_status status = begin(queue, described, false, content, err);

    return status == VXD_OK ? vxd_volume_read_snapshot(reader, as_described(described),
                                                       queue, content, err)
                            : status;
}

static enum vxd_status write_snapshot(struct vxd_snapshot_writer *writer,
                                      struct vxd_queue *queue,
                                      const struct vxd_described *described,
                                      const void *content, struct vxd_err *err)
{
    return vxd_volume_write_snapshot(writer, as_described(described), queue, content,
                                     err);
}

static enum vxd_status apply(struct vxd_queue *queue, void *content,
                             const struct vxd_journal_record *record, struct vxd_err *err)
{
    return vxd_volume_apply(queue, content, record, err);
}

static void end(struct vxd_queue *queue, void *content)
{
    vxd_volume_forget_frame(queue, ((struct vxd_volume_state *)content)->volume);
}

static void clear(struct vxd_queue *queue, void *content)
{
    struct vxd_volume_state *state = content;

    vxd_volume_destroy(queue, state->volume);
    *state = (struct vxd_volume_state){0};
}

static enum vxd_status copy(struct vxd_queue *queue, const void *content,
                            struct vxd_queue *to_queue, void *to, struct vxd_err *err)
{
    const struct vxd_volume_state *from = content;
    struct vxd_volume_state *made = to;

    made->n_images = from->n_images;
    return vxd_volume_copy(queue, from->volume, to_queue, &made->volume, err);
}

/* --- the noun ------------------------------------------------------------------------------------ */

void vxd_volumes_log(enum vxd_registry_event event, const char *name, const char *text)
{
    switch (event) {
    case VXD_REGISTRY_RECOVERING:
        vxd_log(VXD_LOG_INFO, "bringing back volumes", "done", text, "volume", name);
        break;
    case VXD_REGISTRY_RECOVERED:
        vxd_log(VXD_LOG_INFO, "volumes are back", "families", text);
        break;
    case VXD_REGISTRY_SAVED:
        vxd_log(VXD_LOG_INFO, "snapshot written", "volume", name, "seconds", text);
        break;
    case VXD_REGISTRY_NOT_SAVED:
        vxd_log(VXD_LOG_ERROR, "no snapshot was written", "volume", name, "error", text);
        break;
    case VXD_REGISTRY_MADE:
        vxd_log(VXD_LOG_INFO, "durable volume made", "volume", name, "by", text);
        break;
    case VXD_REGISTRY_EXPIRED:
        vxd_log(VXD_LOG_INFO, "volume dropped: nobody used it for its ttl_s", "volume",
                name, "owner", text);
        break;
    case VXD_REGISTRY_BACK:
        vxd_log(VXD_LOG_INFO, "a volume was brought back from the disk", "volume", name);
        break;
    case VXD_REGISTRY_NOT_BACK:
        vxd_log(VXD_LOG_ERROR, "a volume could not be brought back from the disk",
                "volume", name, "error", text);
        break;
    case VXD_REGISTRY_NOT_RECOVERED:
        vxd_log(VXD_LOG_ERROR, "a volume cannot be brought back", "volume", name,
                "reason", text);
        break;
    case VXD_REGISTRY_LOSSY:
        vxd_log(VXD_LOG_ERROR, "a volume has lost changes; its generation is another one",
                "volume", name, "reason", text);
        break;
    case VXD_REGISTRY_BAD_SNAPSHOT:
        vxd_log(VXD_LOG_ERROR, "a snapshot is no good, the one before it is tried",
                "volume", name, "reason", text);
        break;
    }
}

const struct vxd_durable_kind vxd_volumes_kind = {.noun = "volume",
                                                  .prefix = VXD_VOLUME_FAMILIES,
                                                  .log = vxd_volumes_log,
                                                  .recover = vxd_names_recover,
                                                  .save = vxd_names_save};

const struct vxd_durable_calls vxd_volumes_durable = {
    .kind = &vxd_volumes_kind,
    .rules_version = VXD_VOLUME_RULES_VERSION,
    .described_bytes = sizeof(struct vxd_volume_described),
    .content_bytes = sizeof(struct vxd_volume_state),
    .describe = describe,
    .put_description = put_description,
    .read_description = read_description,
    .read_catalogue = read_catalogue,
    .make = make,
    .content = get_content,
    .settle = settle,
    .renew = renew,
    .put = vxd_volume_put,
    .begin = begin,
    .read = read_snapshot,
    .write = write_snapshot,
    .apply = apply,
    .end = end,
    .clear = clear,
    .copy = copy};
