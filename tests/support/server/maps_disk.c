// SPDX-License-Identifier: Apache-2.0
#include "tests/support/server/maps_disk.h"

#include "tests/support/server/server_checks.h"
#include "voxeld/v1/hashmap.pb-c.h"

void world_make_map(struct world *world, const char *name, const char *more)
{
    char json[MAP_JSON_BYTES];

    (void)snprintf(json, sizeof json,
                   "{\"name\":\"%s\",\"spec\":{\"n_components\":1,\"values\":[{\"name\":"
                   "\"v\",\"dtype\":\"INT64\"}]}%s}",
                   name, more);
    if (world_ask(world, "map_create", 0, json) != VXD_OK) {
        vxd_test_note_failure("world_make_map", name);
    }
}

const char world_durable_map[] = ",\"durable\":true";

/* The i-th of changes that are all different, of every kind; its method. */
const char *world_map_change(const char *name, int i, char json[MAP_JSON_BYTES])
{
    static const char *const keys = "{\"dtype\":\"INT32\",\"shape\":[3,1],\"values\":[%d,"
                                    "%d,%d]}";
    char of_keys[200];

    (void)snprintf(of_keys, sizeof of_keys, keys, i, i + 7, i / 2);
    switch (i % 5) {
    case 2:
        (void)snprintf(json, MAP_JSON_BYTES, "{\"name\":\"%s\",\"keys\":%s}", name,
                       of_keys);
        return "map_erase";
    case 3:
        (void)snprintf(json, MAP_JSON_BYTES,
                       "{\"name\":\"%s\",\"keys\":%s,\"combine\":\"MAP_ADD\","
                       "\"insert_missing\":true,\"values\":[{\"name\":\"v\",\"rows\":"
                       "{\"shape\":[3],\"values\":[%d,1,1]}}]}",
                       name, of_keys, 5 * i);
        return "map_update";
    case 4:
        if (i == 4) {
            (void)snprintf(json, MAP_JSON_BYTES, "{\"name\":\"%s\",\"all\":true}", name);
            return "map_erase";
        }
        /* fall through */
    default:
        (void)snprintf(
            json, MAP_JSON_BYTES,
            "{\"name\":\"%s\",\"keys\":%s,\"values\":[{\"name\":\"v\",\"rows\":"
            "{\"shape\":[3],\"values\":[%d,%d,%d]}}]}",
            name, of_keys, i, 2 * i, 3 * i);
        return "map_insert";
    }
}

enum vxd_status world_change_map(struct world *world, const char *name, int i,
                                 uint64_t sequence)
{
    char json[MAP_JSON_BYTES];
    const char *method = world_map_change(name, i, json);

    return world_ask(world, method, sequence, json);
}

static uint64_t fnv(uint64_t hash, const Voxeld__V1__Tensor *tensor)
{
    for (size_t i = 0; i < tensor->data.len; i++) {
        hash = (hash ^ tensor->data.data[i]) * UINT64_C(0x100000001b3);
    }
    return (hash ^ tensor->data.len) * UINT64_C(0x100000001b3);
}

static struct map_view look_once(struct world *world, const char *name)
{
    Voxeld__V1__MapExportResponse *reply = NULL;
    Voxeld__V1__MapGetResponse *got = NULL;
    struct map_view view = {.digest = UINT64_C(0xcbf29ce484222325)};
    struct call call;
    char json[100];

    (void)snprintf(json, sizeof json, "{\"name\":\"%s\"}", name);
    world_send(world, &call, "map_export", 0, json);
    view.status = call_wait(&call);
    if (view.status == VXD_OK) {
        reply = voxeld__v1__map_export_response__unpack(NULL, call.n_packed, call.packed);
    }
    call_finish(&call);
    if (reply == NULL) {
        return view;
    }
    view.epoch = reply->erase_epoch;
    view.digest = fnv(view.digest, reply->indices);
    view.digest = fnv(view.digest, reply->keys);
    view.digest = fnv(view.digest, reply->values[0]->rows);
    voxeld__v1__map_export_response__free_unpacked(reply, NULL);
    world_send(world, &call, "map_get", 0, json);
    if (call_wait(&call) == VXD_OK) {
        got = voxeld__v1__map_get_response__unpack(NULL, call.n_packed, call.packed);
        view.generation = got != NULL ? got->map->generation : 0;
        voxeld__v1__map_get_response__free_unpacked(got, NULL);
    }
    call_finish(&call);
    return view;
}

/* What a failure left goes when the disk can be read again. */
struct map_view world_view_map(struct world *world, const char *name)
{
    struct map_view view = look_once(world, name);

    for (int i = 0; i < 3000 && view.status == VXD_UNAVAILABLE; i++) {
        wait_ms(10);
        view = look_once(world, name);
    }
    return view;
}
