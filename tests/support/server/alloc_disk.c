// SPDX-License-Identifier: Apache-2.0
#include "tests/support/server/alloc_disk.h"

#include <dirent.h>
#include <unistd.h>

#include "server/method_table.h"
#include "server/registry/registry.h"
#include "tests/support/server/server_checks.h"

static char folder[64];

void alloc_folder_make(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/voxeld-alloc-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        abort();
    }
}

static void remove_files(const char *path)
{
    char name[400];
    DIR *dir = opendir(path);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            (void)unlink(name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

void alloc_folder_remove(void)
{
    char inner[80];

    (void)snprintf(inner, sizeof inner, "%s/snapshots", folder);
    remove_files(inner);
    (void)rmdir(inner);
    remove_files(folder);
    (void)rmdir(folder);
}

void alloc_start(struct world *world)
{
    *world = (struct world){.dir = {.lock = -1}};
    world->server = server_start(&(struct server_setup){0});
    if (world->server == NULL) {
        abort();
    }
}

enum vxd_status alloc_open(struct world *world)
{
    struct vxd_err err = {0};
    enum vxd_status status = vxd_data_dir_open(NULL, folder, &world->dir, &err);

    if (status == VXD_OK) {
        status = vxd_registry_open_journal(world->server->registry, world->server->once,
                                           &world->dir, &err);
    }
    EXPECT((status == VXD_OK) == (err.message[0] == '\0'));
    return status;
}

enum vxd_status alloc_send(struct world *world, struct call *call, const char *method,
                           uint64_t sequence, const char *json)
{
    const struct vxd_request_header header = {
        .peer = "test", .peer_uid = -1, .client_id = "robot", .sequence = sequence};
    const struct vxd_body body = {
        .kind = VXD_BODY_JSON, .bytes = (const uint8_t *)json, .n_bytes = strlen(json)};
    struct vxd_request *request = NULL;
    struct vxd_err err = {0};
    enum vxd_status status = vxd_request_create(world->server, &header, &request, &err);

    call_begin(call);
    if (request == NULL) {
        return status;
    }
    call_adopt(call, request);
    EXPECT(vxd_request_admit(request, vxd_method_by_name(vxd_method_table(), method),
                             body.n_bytes, &err) == VXD_OK);
    vxd_request_submit(request, &body);
    return call_wait(call);
}

void alloc_finish(struct call *call)
{
    if (call->id[0] != '\0') { /* else there was no memory for a request */
        call_finish(call);
    }
}
