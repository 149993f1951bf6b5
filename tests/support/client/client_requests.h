// SPDX-License-Identifier: Apache-2.0
/* What the tests of libvoxeld's calls start from: a small cloud, a request, a connection. */
#ifndef VXD_TESTS_SUPPORT_CLIENT_CLIENT_REQUESTS_H
#define VXD_TESTS_SUPPORT_CLIENT_CLIENT_REQUESTS_H

#include <stdbool.h>

#include "client/c/include/voxeld.h"
#include "tests/support/test.h"
#include "tests/support/client/peer.h"

enum {
    N_POINTS = 10,
    PATIENT_MS = 30000 /* what a reply gets that comes, however busy the machine */
};

static const struct voxeld_field xyz_fields[3] = {
    {.name = "x", .offset = 0, .dtype = VOXELD_FLOAT32},
    {.name = "y", .offset = 4, .dtype = VOXELD_FLOAT32},
    {.name = "z", .offset = 8, .dtype = VOXELD_FLOAT32}};

static const float some_points[3 * N_POINTS];

static inline struct voxeld_cloud some_cloud(void)
{
    return (struct voxeld_cloud){.fields = xyz_fields,
                                 .n_fields = 3,
                                 .point_step = 12,
                                 .data = some_points,
                                 .n_points = N_POINTS};
}

static inline struct voxeld_voxelize_request
some_request(const struct voxeld_cloud *cloud)
{
    return (struct voxeld_voxelize_request){
        .clouds = cloud, .n_clouds = 1, .size_m = {0.1, 0.1, 0.1}};
}

static inline struct voxeld_client *connect_to(const struct peer *peer,
                                               uint32_t max_in_flight)
{
    struct voxeld_options options = {.url = peer->url,
                                     .timeout_ms = PATIENT_MS,
                                     .wait_ms = PATIENT_MS,
                                     .max_in_flight = max_in_flight};
    struct voxeld_client *client = NULL;
    struct voxeld_error error;

    if (voxeld_connect(&options, &client, &error) != VOXELD_OK) {
        (void)fprintf(stderr, "connect: %s\n", error.message);
    }
    return client;
}

/* A peer and a client of it. */
struct pair {
    struct peer peer;
    struct voxeld_client *client;
};

/* False after a failed check. */
static inline bool pair_start(struct pair *pair)
{
    bool started = peer_start(&pair->peer, NULL) == 0;

    pair->client = started ? connect_to(&pair->peer, 0) : NULL;
    CHECK(pair->client != NULL);
    return pair->client != NULL;
}

static inline void pair_stop(struct pair *pair)
{
    voxeld_close(pair->client);
    peer_stop(&pair->peer);
}

/* One plain call; its status. */
static inline enum voxeld_status call(struct voxeld_client *client, uint32_t timeout_ms,
                                      struct voxeld_error *error)
{
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_voxelize_request request = some_request(&cloud);
    struct voxeld_voxels *voxels = NULL;
    enum voxeld_status status;

    request.call.timeout_ms = timeout_ms;
    status = voxeld_voxelize(client, &request, &voxels, error);
    CHECK((status == VOXELD_OK) == (voxels != NULL));
    voxeld_voxels_free(voxels);
    return status;
}

#endif
