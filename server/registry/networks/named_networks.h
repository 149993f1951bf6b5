// SPDX-License-Identifier: Apache-2.0
/* The loaded networks, by name: a table of server/registry/named. A network is immutable once
 * it is loaded. Whoever uses one holds it, so it lives on when its name is unloaded or loaded
 * anew, and its memory is freed with its last holder. All functions may be called from any
 * thread.
 *
 * Memory: the weights of all networks that exist count against limits.network_bytes;
 * while a network is loaded anew, both the old one and the new one count. */
#ifndef VXD_SERVER_REGISTRY_NETWORKS_NAMED_NETWORKS_H
#define VXD_SERVER_REGISTRY_NETWORKS_NAMED_NETWORKS_H

#include "server/durable/data_dir/data_dir.h"
#include "server/model/model.h"
#include "server/registry/named/named.h"
#include "server/registry/networks/networks_speed.h"
#include "server/request/request.h"

enum {
    VXD_NETWORKS_MAX = 256,
    VXD_NETWORK_MAX_ITEMS = 256, /* of a request */
    VXD_NETWORK_MAX_VOXELS = 1 << 24
};

/* Of one run. */
struct vxd_network_timings {
    int64_t voxelize_ns;
    int64_t sets_ns;
    int64_t layers_ns;
    int64_t outputs_ns;
    uint32_t n_items;
    uint64_t n_voxels;
};

struct vxd_network {
    struct vxd_named
        named; /* first; its owner made the call that loaded it, "": the configuration */
    struct vxd_model *model;
    struct vxd_net *net;
    struct vxd_net_info info;
    enum vxd_net_precision precision;
    int wished_precision; /* what it was loaded with: as vxd_model_choose_precision takes it */
    int64_t loaded_unix_ns;
    /* What is noted of runs has a mutex of its own. */
    uint64_t n_requests;
    struct vxd_network_timings last;
    struct vxd_network_speed speed;
};

/* Makes the table.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_networks_create(struct vxd_server *server, struct vxd_names **out,
                                    struct vxd_err *err);

/* Reads NAME of networks_dir, builds the network and runs it once. Nobody can find it
 * yet; the caller holds it. Where the network that has the name is the same by digest and
 * precision, that one is returned, and *existed is true. Blocking, with the queue, as
 * long as files and device take.
 * in      precision  as vxd_model_choose_precision takes it
 *         owner      whose quota counts it; "": nobody's
 * errors  FAILED_PRECONDITION  the server has no networks_dir
 *         NOT_FOUND            no such files; err.field "name"
 *         INVALID_ARGUMENT     a fault in them: the message says which and where
 *         RESOURCE_EXHAUSTED   over limits.network_bytes, the owner's quota or the engine's
 *                              budget, too many */
enum vxd_status vxd_networks_load(struct vxd_names *networks, struct vxd_queue *queue,
                                  const char *name, int precision, const char *owner,
                                  bool *existed, struct vxd_network **out,
                                  struct vxd_err *err);

/* Loads and publishes those of the configuration, "NAME" or "NAME:fp16".
 * errors  as vxd_networks_load; INVALID_ARGUMENT  another precision; err.field "networks[2]" */
enum vxd_status vxd_networks_load_configured(struct vxd_names *networks,
                                             struct vxd_err *err);

const struct vxd_server *vxd_networks_server(const struct vxd_names *networks);

/* Keeps the list of what is loaded in a data directory from now on, so that it comes back after a
 * restart, and loads those that the list there names and nobody has loaded yet. One that cannot be loaded is
 * logged. The directory lives as long as the networks. */
void vxd_networks_bring_back(struct vxd_names *networks,
                             const struct vxd_data_dir *data_dir);
/* Writes the list, after networks were published or removed by a call; a failure is logged. */
void vxd_networks_keep(struct vxd_names *networks);

/* Finds a network and holds it; NULL where there is none. */
struct vxd_network *vxd_networks_find(struct vxd_names *networks, const char *name);

/* NULL is fine. */
void vxd_network_drop(struct vxd_network *network);

/* Note that a run of n_requests with n_points is over, and read the number of requests and the
 * last run's timings. */
void vxd_network_note_run(struct vxd_network *network, uint64_t n_requests,
                          uint64_t n_points, const struct vxd_network_timings *timings);
void vxd_network_get_runs(const struct vxd_network *network, uint64_t *n_requests,
                          struct vxd_network_timings *last);

/* What the network is asked about its speed: by how many voxels, or by how many points where these
 * are not known yet. */
struct vxd_network_work {
    uint64_t n_voxels;
    uint64_t n_points;
};

/* Estimates how long a run takes (networks_speed.h); false where that is known and more than
 * left_ns. *expected_ns is 0 where nothing is known. */
bool vxd_network_is_in_time(struct vxd_network *network,
                            const struct vxd_network_work *work, int64_t left_ns,
                            int64_t *expected_ns);
/* Notes that a run ended early, since its time was over. */
void vxd_network_note_expired(struct vxd_network *network);

/* Returns the device bytes that a run of at most n_rows voxels will take, for admission:
 * more than most runs take, and never more than the engine's budget. */
uint64_t vxd_network_run_bytes(const struct vxd_network *network, size_t n_rows);

#endif
