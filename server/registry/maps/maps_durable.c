// SPDX-License-Identifier: Apache-2.0
/* What is maps' own of being durable: the rest is that of all named things (server/registry/named). */
#include "server/observe/log/log.h"
#include "server/registry/maps/maps_internal.h"

/* What a map is made of. */
struct content {
    struct vxd_hashmap *hashmap;
};

static const struct vxd_map_described *as_described(const struct vxd_described *described)
{
    return (const struct vxd_map_described *)described;
}

/* --- descriptions -------------------------------------------------------------------------------- */

static void describe(const struct vxd_named *named, struct vxd_described *out)
{
    const struct vxd_map *map = (const struct vxd_map *)named;
    struct vxd_map_described *described = (struct vxd_map_described *)out;

    described->spec = map->spec;
    described->first_epoch = map->first_epoch;
}

static void put_description(struct vxd_bytes_out *out,
                            const struct vxd_described *described)
{
    vxd_map_describe(out, as_described(described));
}

static enum vxd_status read_description(const void *bytes, size_t n_bytes,
                                        struct vxd_described *out, struct vxd_err *err)
{
    return vxd_map_read_description(bytes, n_bytes, (struct vxd_map_described *)out, err);
}

static enum vxd_status read_catalogue(struct vxd_snapshot_reader *reader,
                                      struct vxd_described *out, struct vxd_err *err)
{
    return vxd_map_read_catalogue(reader, (struct vxd_map_described *)out, err);
}

/* --- maps ---------------------------------------------------------------------------------------- */

static enum vxd_status make(struct vxd_names *names,
                            const struct vxd_described *described, struct vxd_named **out,
                            struct vxd_err *err)
{
    struct vxd_map *map = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_map_new(names, vxd_names_queue(names), &described->terms,
                        &as_described(described)->spec, NULL, &map, err));
    map->first_epoch = as_described(described)->first_epoch;
    *out = &map->named;
out:
    return status;
}

static void *get_content(struct vxd_named *named)
{
    return &((struct vxd_map *)named)->hashmap;
}

static enum vxd_status settle(struct vxd_named *named, struct vxd_err *err)
{
    struct vxd_map *map = (struct vxd_map *)named;
    size_t n_entries = 0;
    enum vxd_status status =
        vxd_hashmap_size(vxd_names_queue(named->names), map->hashmap, &n_entries, err);

    map->n_entries = n_entries;
    return status;
}

/* Numbers of entries count as another map's, too. */
static void renew(struct vxd_named *named, uint64_t now_unix_ns)
{
    struct vxd_map *map = (struct vxd_map *)named;
    uint64_t now = now_unix_ns / 1000;

    map->first_epoch = now > vxd_map_epoch(map) ? now : vxd_map_epoch(map) + 1;
}

/* --- entries ------------------------------------------------------------------------------------- */

static enum vxd_status begin(struct vxd_queue *queue,
                             const struct vxd_described *described, bool is_small,
                             void *content, struct vxd_err *err)
{
    struct content *made = content;
    struct vxd_hashmap_spec spec = as_described(described)->spec.engine;

    spec.max_bytes = 0;
    spec.capacity = is_small ? 0 : spec.capacity;
    return vxd_hashmap_create(queue, &spec, &made->hashmap, err);
}

static enum vxd_status read_snapshot(struct vxd_snapshot_reader *reader,
                                     struct vxd_queue *queue,
                                     const struct vxd_described *described, void *content,
                                     struct vxd_err *err)
{
    struct content *made = content;

    return vxd_map_read_snapshot(reader, as_described(described), queue, &made->hashmap,
                                 err);
}

static enum vxd_status write_snapshot(struct vxd_snapshot_writer *writer,
                                      struct vxd_queue *queue,
                                      const struct vxd_described *described,
                                      const void *content, struct vxd_err *err)
{
    const struct content *from = content;

    return vxd_map_write_snapshot(writer, as_described(described), queue, from->hashmap,
                                  err);
}

static enum vxd_status apply(struct vxd_queue *queue, void *content,
                             const struct vxd_journal_record *record, struct vxd_err *err)
{
    const struct content *to = content;

    return vxd_map_apply(queue, to->hashmap, record, err);
}

static void clear(struct vxd_queue *queue, void *content)
{
    struct content *old = content;

    vxd_hashmap_destroy(queue, old->hashmap);
    old->hashmap = NULL;
}

/* --- the noun ------------------------------------------------------------------------------------ */

void vxd_maps_log(enum vxd_registry_event event, const char *name, const char *text)
{
    switch (event) {
    case VXD_REGISTRY_RECOVERING:
        vxd_log(VXD_LOG_INFO, "bringing back maps", "done", text, "map", name);
        break;
    case VXD_REGISTRY_RECOVERED:
        vxd_log(VXD_LOG_INFO, "maps are back", "families", text);
        break;
    case VXD_REGISTRY_SAVED:
        vxd_log(VXD_LOG_INFO, "snapshot written", "map", name, "seconds", text);
        break;
    case VXD_REGISTRY_NOT_SAVED:
        vxd_log(VXD_LOG_ERROR, "no snapshot was written", "map", name, "error", text);
        break;
    case VXD_REGISTRY_MADE:
        vxd_log(VXD_LOG_INFO, "durable map made", "map", name, "by", text);
        break;
    case VXD_REGISTRY_EXPIRED:
        vxd_log(VXD_LOG_INFO, "map dropped: nobody used it for its ttl_s", "map", name,
                "owner", text);
        break;
    case VXD_REGISTRY_BACK:
        vxd_log(VXD_LOG_INFO, "a map was brought back from the disk", "map", name);
        break;
    case VXD_REGISTRY_NOT_BACK:
        vxd_log(VXD_LOG_ERROR, "a map could not be brought back from the disk", "map",
                name, "error", text);
        break;
    case VXD_REGISTRY_NOT_RECOVERED:
        vxd_log(VXD_LOG_ERROR, "a map cannot be brought back", "map", name, "reason",
                text);
        break;
    case VXD_REGISTRY_LOSSY:
        vxd_log(VXD_LOG_ERROR, "a map has lost changes; its generation is another one",
                "map", name, "reason", text);
        break;
    case VXD_REGISTRY_BAD_SNAPSHOT:
        vxd_log(VXD_LOG_ERROR, "a snapshot is no good, the one before it is tried", "map",
                name, "reason", text);
        break;
    }
}

const struct vxd_durable_kind vxd_maps_kind = {.noun = "map",
                                               .prefix = VXD_MAP_FAMILIES,
                                               .log = vxd_maps_log,
                                               .recover = vxd_names_recover,
                                               .save = vxd_names_save};

const struct vxd_durable_calls vxd_maps_durable = {
    .kind = &vxd_maps_kind,
    .rules_version = VXD_MAP_RULES_VERSION,
    .described_bytes = sizeof(struct vxd_map_described),
    .content_bytes = sizeof(struct content),
    .describe = describe,
    .put_description = put_description,
    .read_description = read_description,
    .read_catalogue = read_catalogue,
    .make = make,
    .content = get_content,
    .settle = settle,
    .renew = renew,
    .begin = begin,
    .read = read_snapshot,
    .write = write_snapshot,
    .apply = apply,
    .clear = clear};
