// SPDX-License-Identifier: Apache-2.0
#include "tests/support/server/volumes_disk.h"

#include "server/instance/instance.h"
#include "server/registry/volumes/volumes.h"
#include "tests/support/server/server_checks.h"

const char world_durable_volume[] = ",\"durable\":true";

/* --- requests ------------------------------------------------------------------------------- */

void world_make_volume(struct world *world, const char *name, const char *more)
{
    char json[VOLUME_JSON_BYTES];

    (void)snprintf(json, sizeof json,
                   "{\"name\":\"%s\",\"voxelSizeM\":0.1,\"truncationM\":0.3,"
                   "\"compact\":true%s}",
                   name, more);
    if (world_ask(world, "volume_create", 0, json) != VXD_OK) {
        vxd_test_note_failure("world_make_volume", name);
    }
}

/* 8 x 6 pixels of one depth as base64: three pixels are eight letters. */
static void encode_depth(unsigned millimetres, char out[129])
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned low = millimetres & 255;
    unsigned high = millimetres >> 8;

    for (int i = 0; i < 128; i += 8) {
        const unsigned words[2] = {low << 16 | high << 8 | low,
                                   high << 16 | low << 8 | high};

        for (int k = 0; k < 8; k++) {
            out[i + k] = letters[words[k / 4] >> (18 - 6 * (k % 4)) & 63];
        }
    }
    out[128] = '\0';
}

/* The i-th of changes that are all different, of every kind: its parameter, and its method. */
const char *world_volume_change(const char *name, int i, char json[VOLUME_JSON_BYTES])
{
    char depth[129];

    if (i % 4 == 2) {
        (void)snprintf(json, VOLUME_JSON_BYTES,
                       "{\"name\":\"%s\",\"box\":{\"low\":{\"x\":-9,\"y\":-9,\"z\":0},"
                       "\"high\":{\"x\":%g,\"y\":9,\"z\":9}}}",
                       name, 0.05 * i - 0.3);
        return "volume_clear";
    }
    if (i % 4 == 3) {
        (void)snprintf(json, VOLUME_JSON_BYTES,
                       "{\"name\":\"%s\",\"factor\":0.6,\"minWeight\":%g,\"all\":true}",
                       name, 0.1 * i);
        return "volume_decay";
    }
    encode_depth(900 + 70 * (unsigned)i, depth);
    (void)snprintf(json, VOLUME_JSON_BYTES,
                   "{\"name\":\"%s\",\"camera\":{\"width\":8,\"height\":6,\"fx\":7,"
                   "\"cx\":4,\"cy\":3},\"depthType\":\"VOLUME_DEPTH_UINT16\","
                   "\"weight\":%d,\"depth\":\"%s\"}",
                   name, i + 2, depth);
    return "volume_integrate";
}

enum vxd_status world_change_volume(struct world *world, const char *name, int i,
                                    uint64_t sequence)
{
    char json[VOLUME_JSON_BYTES];
    const char *method = world_volume_change(name, i, json);

    return world_ask(world, method, sequence, json);
}

/* --- what everybody sees --------------------------------------------------------------------- */

static uint64_t fnv(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* Reads the engine's volume, which no request changes now. */
static void read_layers(struct world *world, const char *name, struct volume_view *view)
{
    struct vxd_names *volumes = world->server->volumes;
    struct vxd_queue *queue = vxd_names_queue(volumes);
    const struct vxd_named_volume *named = vxd_volumes_peek(volumes, name);
    struct vxd_volume_layer layers[VXD_VOLUME_MAX_LAYERS];
    int n_layers = vxd_volume_get_layers(named->state.volume, layers);
    struct vxd_volume_blocks blocks;
    struct vxd_volume_info info;
    int32_t *entries = NULL;
    size_t n = 0;

    vxd_volume_get_info(named->state.volume, &info);
    if (vxd_volume_list_changed(queue, named->state.volume, 0, &entries, &n, NULL) !=
            VXD_OK ||
        vxd_volume_read_blocks(queue, named->state.volume, entries, n, true, &blocks,
                               NULL) != VXD_OK) {
        vxd_test_note_failure("world_view_volume", name);
        free(entries);
        return;
    }
    view->digest = fnv(UINT64_C(0xcbf29ce484222325), entries, n * sizeof *entries);
    view->digest =
        fnv(view->digest, &named->state.n_images, sizeof named->state.n_images);
    if (n > 0) {
        view->digest = fnv(view->digest, blocks.keys, 3 * n * sizeof(int32_t));
    }
    for (int i = 0; i < n_layers && n > 0; i++) {
        view->digest = fnv(view->digest, blocks.layers[i],
                           n * layers[i].n_elements * vxd_dtype_bytes(layers[i].dtype));
    }
    view->stamp = info.version;
    view->generation = named->named.generation;
    vxd_volume_blocks_free(queue, &blocks);
    free(entries);
}

/* Waits where a failure left what has to go first, at most 5 s. */
struct volume_view world_view_volume(struct world *world, const char *name)
{
    struct volume_view view = {0};
    char json[100];

    (void)snprintf(json, sizeof json, "{\"name\":\"%s\"}", name);
    view.status = world_ask(world, "volume_get", 0, json);
    for (int i = 0; i < 500 && view.status == VXD_UNAVAILABLE; i++) {
        wait_ms(10);
        view.status = world_ask(world, "volume_get", 0, json);
    }
    if (view.status == VXD_OK) {
        read_layers(world, name, &view);
    }
    return view;
}
