// SPDX-License-Identifier: Apache-2.0
#include "tests/support/server/scenes_disk.h"

#include "server/durable/snapshot/snapshot.h"
#include "server/method_table.h"
#include "server/registry/registry.h"
#include "server/schedule/schedule.h"
#include "server/schedule/scheduler_internal.h"
#include "server/server.h"
#include "tests/support/server/server_checks.h"
#include "voxeld/v1/scene.pb-c.h"

const char world_durable[] = ",\"durability\":{\"fsync\":\"SCENE_FSYNC_ALWAYS\"}";

void world_start(struct world *world)
{
    struct vxd_err err = {0};

    world->server =
        server_start(&(struct server_setup){.replay_clients = world->replay_clients});
    if (world->server == NULL ||
        vxd_data_dir_open(fault_disk_ops(world->disk), WORLD_DIR, &world->dir, &err) !=
            VXD_OK ||
        vxd_registry_open_journal(world->server->registry, world->server->once,
                                  &world->dir, &err) != VXD_OK) {
        vxd_test_note_failure("start", err.message);
        abort();
    }
}

void world_stop(struct world *world)
{
    (void)vxd_scheduler_drain(world->server->scheduler, 20000);
    vxd_server_close(world->server);
    free(world->server);
    world->server = NULL;
    vxd_data_dir_close(&world->dir);
}

void world_begin(struct world *world)
{
    *world = (struct world){.disk = fault_disk_create(), .dir = {.lock = -1}};
    if (world->disk == NULL) {
        abort();
    }
    world_start(world);
}

void world_end(struct world *world)
{
    world_stop(world);
    fault_disk_destroy(world->disk);
}

void world_restart(struct world *world)
{
    world_stop(world);
    world_start(world);
}

/* --- snapshot files ------------------------------------------------------------------------ */

static size_t list_files(const struct world *world, uint32_t family, uint64_t *newest)
{
    uint64_t *sequences = NULL;
    size_t n = 0;

    (void)vxd_snapshot_list(&world->dir, family, &sequences, &n, NULL);
    *newest = n > 0 ? sequences[0] : 0;
    free(sequences);
    return n;
}

size_t world_save(struct world *world, uint32_t family, size_t n_files, int n_tries)
{
    uint64_t newest;
    size_t n = 0;

    vxd_registry_ask_snapshot(world->server->registry, family);
    for (int i = 0; i < n_tries && n < n_files; i++) {
        wait_ms(5);
        n = list_files(world, family, &newest);
    }
    return n;
}

bool world_find_file(const struct world *world, uint32_t family,
                     char path[VXD_DURABLE_PATH_BYTES])
{
    uint64_t newest;
    bool is_there = list_files(world, family, &newest) > 0;

    vxd_snapshot_path(&world->dir, family, newest, "", path);
    return is_there;
}

void world_damage_file(struct world *world, uint32_t family)
{
    char path[VXD_DURABLE_PATH_BYTES];
    size_t n_bytes = 0;
    uint8_t *bytes = world_find_file(world, family, path)
                         ? fault_disk_bytes(world->disk, path, &n_bytes)
                         : NULL;

    EXPECT(bytes != NULL);
    if (bytes != NULL) {
        bytes[n_bytes / 2] ^= 1;
    }
}

/* --- requests ------------------------------------------------------------------------------ */

void world_send(struct world *world, struct call *call, const char *method,
                uint64_t sequence, const char *json)
{
    const struct vxd_request_header header = {
        .peer = "test", .peer_uid = -1, .client_id = "robot", .sequence = sequence};

    call_begin(call);
    call_json(call, world->server, vxd_method_by_name(vxd_method_table(), method),
              &header, json);
}

enum vxd_status world_receive(struct call *call)
{
    enum vxd_status status = call_wait(call);

    call_finish(call);
    return status;
}

enum vxd_status world_ask(struct world *world, const char *method, uint64_t sequence,
                          const char *json)
{
    struct call call;

    world_send(world, &call, method, sequence, json);
    return world_receive(&call);
}

enum vxd_status world_insist(struct world *world, const char *method, uint64_t sequence,
                             const char *json)
{
    enum vxd_status status = VXD_UNAVAILABLE;

    for (int i = 0; i < 1500 && status != VXD_OK; i++) {
        status = world_ask(world, method, sequence, json);
        if (status != VXD_OK) {
            wait_ms(20);
        }
    }
    return status;
}

void world_make(struct world *world, const char *name, const char *more)
{
    char json[300];

    (void)snprintf(json, sizeof json,
                   "{\"name\":\"%s\",\"spec\":{\"voxel_size_m\":1,\"depth\":4,"
                   "\"material_bits\":4}%s}",
                   name, more);
    if (world_ask(world, "scene_create", 0, json) != VXD_OK) {
        vxd_test_note_failure("world_make", name);
    }
}

const char *world_edit_json(const char *name, int i, char json[300])
{
    (void)snprintf(
        json, 300,
        "{\"name\":\"%s\",\"in_voxels\":true,\"operations\":[{\"box\":{\"low\":"
        "{\"x\":%d,\"y\":0,\"z\":0},\"high\":{\"x\":%d,\"y\":%d,\"z\":3}},"
        "\"material\":%d}]}",
        name, i, i + 1, i + 2, i % 7);
    return json;
}

enum vxd_status world_edit(struct world *world, const char *name, int i)
{
    char json[300];

    return world_ask(world, "scene_edit", 0, world_edit_json(name, i, json));
}

struct seen world_look(struct world *world, const char *name, const char *snapshot)
{
    struct seen seen = {0};
    Voxeld__V1__SceneGetResponse *reply;
    struct call call;
    char json[200];

    (void)snprintf(json, sizeof json, "{\"name\":\"%s\",\"at\":{\"snapshot\":\"%s\"}}",
                   name, snapshot);
    world_send(world, &call, "scene_get", 0, json);
    seen.status = call_wait(&call);
    reply = seen.status == VXD_OK
                ? voxeld__v1__scene_get_response__unpack(NULL, call.n_packed, call.packed)
                : NULL;
    if (reply != NULL) {
        seen.version = reply->scene->version;
        seen.generation = reply->scene->generation;
        seen.n_snapshots = reply->scene->n_snapshots;
        (void)snprintf(seen.digest, sizeof seen.digest, "%s", reply->scene->digest);
        voxeld__v1__scene_get_response__free_unpacked(reply, NULL);
    }
    call_finish(&call);
    return seen;
}

uint64_t world_version_of(struct world *world, uint64_t sequence, const char *json)
{
    Voxeld__V1__SceneEditResponse *reply = NULL;
    struct call call;
    uint64_t version = 0;

    world_send(world, &call, "scene_edit", sequence, json);
    if (call_wait(&call) == VXD_OK) {
        reply = voxeld__v1__scene_edit_response__unpack(NULL, call.n_packed, call.packed);
    }
    if (reply != NULL) {
        version = reply->change->version;
        voxeld__v1__scene_edit_response__free_unpacked(reply, NULL);
    }
    call_finish(&call);
    return version;
}

/* --- a gate before the disk ---------------------------------------------------------------- */

static enum vxd_status stay(void *user, const struct vxd_journal_family *family,
                            struct vxd_err *err)
{
    struct gate *gate = user;

    (void)family;
    (void)err;
    (void)pthread_mutex_lock(&gate->mutex);
    gate->is_closed = true;
    (void)pthread_cond_broadcast(&gate->changed);
    while (!gate->may_open) {
        (void)pthread_cond_wait(&gate->changed, &gate->mutex);
    }
    (void)pthread_mutex_unlock(&gate->mutex);
    return VXD_OK;
}

static void *read_journal(void *argument)
{
    struct gate *gate = argument;

    (void)vxd_journal_read_families(gate->journal, stay, gate, NULL);
    return NULL;
}

void gate_close(struct gate *gate, const struct world *world)
{
    *gate = (struct gate){.journal = vxd_registry_get_journal(world->server->registry)};
    (void)pthread_mutex_init(&gate->mutex, NULL);
    (void)pthread_cond_init(&gate->changed, NULL);
    if (pthread_create(&gate->thread, NULL, read_journal, gate) != 0) {
        abort();
    }
    (void)pthread_mutex_lock(&gate->mutex);
    while (!gate->is_closed) {
        (void)pthread_cond_wait(&gate->changed, &gate->mutex);
    }
    (void)pthread_mutex_unlock(&gate->mutex);
}

void gate_open(struct gate *gate)
{
    (void)pthread_mutex_lock(&gate->mutex);
    gate->may_open = true;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->mutex);
    (void)pthread_join(gate->thread, NULL);
    (void)pthread_cond_destroy(&gate->changed);
    (void)pthread_mutex_destroy(&gate->mutex);
}

void world_wait_for_changes(const struct world *world, size_t n_changes)
{
    struct vxd_scheduler *scheduler = world->server->scheduler;
    size_t n = 0;

    for (int i = 0; i < 30000 && n < n_changes; i++) {
        wait_ms(1);
        (void)pthread_mutex_lock(&scheduler->mutex);
        n = scheduler->n_committing;
        (void)pthread_mutex_unlock(&scheduler->mutex);
    }
    if (n != n_changes) {
        vxd_test_note_failure("world_wait_for_changes", "not so many wait");
    }
}
