// SPDX-License-Identifier: Apache-2.0
#include "server/registry/volumes/volumes_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/registry/fields/registry_fields.h"
#include "server/registry/odometries/odometries.h"

enum {
    CAPACITY_STEP = 32 /* the part of a capacity that is tried less next */
};

static struct vxd_named_volume *as_volume(struct vxd_named *named)
{
    return (struct vxd_named_volume *)named;
}

static size_t count_bytes(const struct vxd_named *named)
{
    struct vxd_volume_info info;

    vxd_volume_get_info(((const struct vxd_named_volume *)named)->state.volume, &info);
    return info.n_bytes;
}

static uint64_t version_of(const struct vxd_named *named)
{
    struct vxd_volume_info info;

    vxd_volume_get_info(((const struct vxd_named_volume *)named)->state.volume, &info);
    return info.version;
}

void vxd_volume_renew_order(struct vxd_named_volume *volume)
{
    uint64_t now_ns = (uint64_t)vxd_clock_unix_ns();

    volume->order = (uint32_t)(now_ns * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

static void clear(struct vxd_named *named, struct vxd_queue *queue)
{
    vxd_volume_destroy(queue, as_volume(named)->state.volume);
}

void vxd_volume_forget_fields(struct vxd_named *named)
{
    const struct vxd_server *server = vxd_names_own(named->names);

    if (server->fields != NULL) {
        vxd_fields_drop_scene(server->fields, NULL,
                              VXD_VOLUME_FIELDS | named->generation);
    }
}

/* A name that is taken away takes along what is kept beside the volume. */
static void forget(struct vxd_named *named)
{
    const struct vxd_server *server = vxd_names_own(named->names);

    vxd_volume_forget_fields(named);
    vxd_odometries_drop_beside(server->odometries, VXD_ODOMETRY_OF_VOLUME,
                               named->terms.name);
}

static const struct vxd_noun_calls calls = {.one = "volume",
                                            .many = "volumes",
                                            .max = VXD_VOLUMES_MAX,
                                            .n_bytes = sizeof(struct vxd_named_volume),
                                            .uses_device = true,
                                            .has_quota = true,
                                            .quota = VXD_NOUN_VOLUME,
                                            .bytes_key = "limits.volume_bytes",
                                            .token_bytes_key =
                                                "limits.volume_bytes_per_token",
                                            .log = vxd_volumes_log,
                                            .count_bytes = count_bytes,
                                            .version = version_of,
                                            .clear = clear,
                                            .unnamed = forget,
                                            .durable = &vxd_volumes_durable};

enum vxd_status vxd_volumes_create(struct vxd_server *server, struct vxd_names **out,
                                   struct vxd_err *err)
{
    struct vxd_names_options options = {.calls = &calls,
                                        .token_limit_bytes =
                                            server->config.token_volume_bytes,
                                        .take_own = server};
    struct vxd_memory_usage memory;

    vxd_context_get_memory(server->context, &memory);
    options.limit_bytes = server->config.volume_bytes > 0
                              ? server->config.volume_bytes
                              : memory.device_budget_bytes / 2;
    return vxd_names_create(server, &options, out, err);
}

bool vxd_volume_spec_equal(const struct vxd_volume_spec *a,
                           const struct vxd_volume_spec *b)
{
    for (int i = 0; i < 3; i++) {
        if (a->origin_m[i] != b->origin_m[i]) {
            return false;
        }
    }
    return a->voxel_size_m == b->voxel_size_m && a->block_edge == b->block_edge &&
           a->truncation_m == b->truncation_m && a->form == b->form &&
           a->has_colour == b->has_colour && a->has_labels == b->has_labels &&
           a->has_albedo == b->has_albedo && a->max_weight == b->max_weight;
}

struct vxd_named_volume *vxd_volumes_find(struct vxd_names *volumes, const char *name)
{
    return as_volume(vxd_names_find(volumes, name));
}

struct vxd_named_volume *vxd_volumes_peek(const struct vxd_names *volumes,
                                          const char *name)
{
    return as_volume(vxd_names_peek(volumes, name));
}

void vxd_named_volume_allow(struct vxd_named_volume *volume)
{
    const struct vxd_named *named = &volume->named;

    vxd_hashmap_set_max_bytes(vxd_volume_map(volume->state.volume),
                              vxd_names_allowance(named->names, &named->terms, named));
}

/* Makes the engine's volume that holds all the blocks that max_bytes allow: the first capacity
 * that fits, from what the blocks alone would give downwards. */
static enum vxd_status make_full(struct vxd_queue *queue, uint64_t max_bytes,
                                 struct vxd_volume_spec *spec, struct vxd_volume **out,
                                 struct vxd_err *err)
{
    size_t capacity = (size_t)(max_bytes / vxd_volume_block_bytes(spec));
    enum vxd_status status = VXD_RESOURCE_EXHAUSTED;

    while (status == VXD_RESOURCE_EXHAUSTED && capacity > 0) {
        struct vxd_volume_info info;

        spec->capacity = capacity;
        status = vxd_volume_create(queue, spec, out, err);
        if (status == VXD_OK) {
            vxd_volume_get_info(*out, &info);
            if (info.n_bytes <= max_bytes) {
                return VXD_OK;
            }
            vxd_volume_destroy(queue, *out);
            *out = NULL;
            status = VXD_RESOURCE_EXHAUSTED;
        }
        capacity -= capacity / CAPACITY_STEP + 1;
    }
    return capacity > 0 ? status
                        : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                                   "%" PRIu64 " bytes hold no block of %zu", max_bytes,
                                   vxd_volume_block_bytes(spec));
}

/* Makes the engine's volume; the spec's capacity becomes the one that it keeps. */
static enum vxd_status make_engines(const struct vxd_names *volumes,
                                    struct vxd_queue *queue,
                                    const struct vxd_named_terms *terms,
                                    struct vxd_volume_spec *spec, struct vxd_volume **out,
                                    struct vxd_err *err)
{
    size_t allowed = vxd_names_allowance(volumes, terms, NULL);
    enum vxd_status status;

    spec->max_bytes = allowed;
    if (terms->forgets && spec->capacity == 0) {
        size_t most = allowed != 0 && allowed < terms->max_bytes
                          ? allowed
                          : (size_t)terms->max_bytes;

        status = make_full(queue, most, spec, out, err);
    } else {
        status = vxd_volume_create(queue, spec, out, err);
    }
    spec->max_bytes = 0;
    return status;
}

enum vxd_status vxd_named_volume_new(struct vxd_names *volumes, struct vxd_queue *queue,
                                     const struct vxd_named_terms *terms,
                                     const struct vxd_volume_spec *spec,
                                     struct vxd_volume *take_volume,
                                     struct vxd_named_volume **out, struct vxd_err *err)
{
    struct vxd_named *named = NULL;
    struct vxd_named_volume *volume = NULL;
    struct vxd_volume_info info;
    enum vxd_status status;

    VXD_TRY(vxd_named_begin(volumes, terms, &named, err));
    volume = as_volume(named);
    volume->spec = *spec;
    if (take_volume == NULL) {
        VXD_TRY(make_engines(volumes, queue, terms, &volume->spec, &take_volume, err));
    }
    volume->state.volume = take_volume;
    vxd_volume_renew_order(volume);
    vxd_volume_get_info(take_volume, &info);
    volume->spec.max_weight = info.spec.max_weight;
    /* Stamps begin there, so that a stamp of an earlier volume of this name is known. */
    vxd_volume_begin_version(take_volume, named->generation);
    vxd_named_enlist(named);
    *out = volume;
    return VXD_OK;
out:
    vxd_names_explain(volumes, terms, NULL, err);
    vxd_volume_destroy(queue, take_volume);
    free(volume);
    return status;
}

enum vxd_status vxd_named_volume_begin_anew(const struct vxd_named_volume *volume,
                                            struct vxd_queue *queue,
                                            struct vxd_volume **out, struct vxd_err *err)
{
    const struct vxd_named *named = &volume->named;
    struct vxd_volume_spec spec = volume->spec;
    struct vxd_volume_info info;
    enum vxd_status status;

    vxd_volume_get_info(volume->state.volume, &info);
    status = make_engines(named->names, queue, &named->terms, &spec, out, err);
    if (status != VXD_OK) {
        vxd_names_explain(named->names, &named->terms, NULL, err);
        goto out;
    }
    /* The next version, so that records say that all blocks were removed. */
    vxd_volume_begin_version(*out, info.version + 1);
out:
    return status;
}

void vxd_named_volume_replace(struct vxd_named_volume *volume, struct vxd_queue *queue,
                              struct vxd_volume *take_volume, uint64_t n_images)
{
    vxd_volume_destroy(queue, volume->state.volume);
    volume->state.volume = take_volume;
    volume->state.n_images = n_images;
    vxd_volume_renew_order(volume);
    vxd_volume_forget_fields(&volume->named);
    vxd_named_account(&volume->named);
}
