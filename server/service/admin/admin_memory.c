// SPDX-License-Identifier: Apache-2.0
/* Who holds memory. On the transport's thread, from what each registry counts. */
#include "server/service/admin/admin.h"

#include "server/instance/instance.h"
#include "server/registry/fields/registry_fields.h"
#include "server/registry/maps/maps.h"
#include "server/registry/networks/networks.h"
#include "server/registry/odometries/odometries.h"
#include "server/registry/posegraphs/posegraphs.h"
#include "server/registry/scenes/scenes.h"
#include "server/registry/volumes/volumes.h"
#include "server/request/request.h"
#include "server/service/service.h"
#include "server/service/slac/service_slac.h"

enum {
    MAX_OWNERS = 10
};

struct owner {
    const char *name;
    uint64_t n;
    uint64_t n_bytes;
    uint64_t limit_bytes; /* 0 = none of its own */
    bool on_device;
};

/* Those whose names users chose, or whose work runs, and what they hold. */
static size_t list_owners(const struct vxd_server *server, struct owner out[MAX_OWNERS])
{
    struct vxd_names_usage maps;
    struct vxd_scenes_usage scenes;
    struct vxd_fields_usage fields;
    struct vxd_names_usage volumes;
    struct vxd_names_usage graphs;
    struct vxd_names_usage odometries;
    struct vxd_names_usage networks;
    struct vxd_slac_usage slac;
    struct vxd_once_usage once;
    size_t n = 0;

    vxd_names_get_usage(server->maps, &maps);
    vxd_scenes_get_usage(server->scenes, &scenes);
    vxd_fields_get_usage(server->fields, &fields);
    vxd_names_get_usage(server->volumes, &volumes);
    vxd_names_get_usage(server->posegraphs, &graphs);
    vxd_odometries_get_usage(server->odometries, &odometries);
    vxd_names_get_usage(server->networks, &networks);
    vxd_slac_jobs_get_usage(server->slac, &slac);
    vxd_once_get_usage(server->once, &once);
    out[n++] = (struct owner){"maps", maps.n, maps.n_bytes, maps.limit_bytes, true};
    out[n++] = (struct owner){"scenes", scenes.n_scenes, scenes.n_bytes,
                              scenes.limit_bytes, true};
    out[n++] =
        (struct owner){"distance fields", fields.n_fields, fields.n_bytes, 0, true};
    out[n++] =
        (struct owner){"volumes", volumes.n, volumes.n_bytes, volumes.limit_bytes, true};
    out[n++] = (struct owner){"pose graphs", graphs.n, graphs.n_bytes, graphs.limit_bytes,
                              false};
    out[n++] = (struct owner){"odometries", odometries.n, odometries.n_bytes, 0, true};
    out[n++] = (struct owner){"networks", networks.n, networks.n_bytes,
                              networks.limit_bytes, true};
    out[n++] = (struct owner){"alignments", slac.n_jobs, slac.n_bytes, 0, true};
    out[n++] =
        (struct owner){"remembered outcomes", once.n_outcomes, once.n_bytes, 0, false};
    return n;
}

enum vxd_status vxd_status_set_memory(struct vxd_request *request, uint64_t device_bytes,
                                      Voxeld__V1__StatusResponse *reply,
                                      struct vxd_err *err)
{
    struct owner owners[MAX_OWNERS];
    size_t n = list_owners(request->server, owners);
    uint64_t owned = 0;

    for (size_t i = 0; i < n; i++) {
        owned += owners[i].on_device ? owners[i].n_bytes : 0;
    }
    /* The counts are of different moments, so they may be more than there is. */
    owners[n++] = (struct owner){
        "others", 0, device_bytes > owned ? device_bytes - owned : 0, 0, true};
    reply->memory = vxd_message_pointers(request->decoder, n, err);
    if (reply->memory == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        const struct owner *owner = &owners[i];
        Voxeld__V1__MemoryOwner *row =
            vxd_message_new(request->decoder, &voxeld__v1__memory_owner__descriptor, err);

        if (row == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        row->name = (char *)(uintptr_t)owner->name; /* a literal, which is only read */
        row->n = owner->n;
        row->n_bytes = owner->n_bytes;
        row->limit_bytes = owner->limit_bytes;
        row->on_device = owner->on_device;
        reply->memory[i] = row;
    }
    reply->n_memory = n;
    return VXD_OK;
}
