// SPDX-License-Identifier: Apache-2.0
/* A robot's program on libvoxeld, as its header describes: one synchronous call, then
 * as many asynchronous ones, whose callbacks run on this thread in poll and dispatch.
 * All must agree. Prints its results as one JSON line.
 *
 * usage: foreign_client URL FILE SIZE N_ASYNC */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/include/voxeld.h"

#define POLL_MS 30000

struct results {
    size_t n_done;
    size_t n_equal;
    const struct voxeld_voxels *first;
};

static int failed(const char *what, const struct voxeld_error *error)
{
    (void)fprintf(stderr, "%s: %s: %s\n", what, voxeld_status_name(error->code),
                  error->message);
    return EXIT_FAILURE;
}

static bool are_equal(const struct voxeld_voxels *a, const struct voxeld_voxels *b)
{
    return a->n_voxels == b->n_voxels &&
           memcmp(a->coords, b->coords, a->n_voxels * 4 * sizeof *a->coords) == 0 &&
           memcmp(a->counts, b->counts, a->n_voxels * sizeof *a->counts) == 0;
}

static void on_voxels(void *context, struct voxeld_voxels *voxels,
                      const struct voxeld_error *error)
{
    struct results *results = context;

    results->n_done++;
    if (voxels != NULL) {
        results->n_equal += are_equal(voxels, results->first) ? 1 : 0;
        voxeld_voxels_free(voxels);
    } else {
        (void)failed("asynchronous voxelize", error);
    }
}

static int run_async(struct voxeld_client *client,
                     const struct voxeld_voxelize_request *request, size_t n,
                     struct results *results)
{
    struct pollfd ready = {.fd = voxeld_fd(client), .events = POLLIN};
    struct voxeld_error error = {0};

    for (size_t i = 0; i < n; i++) {
        if (voxeld_voxelize_async(client, request, on_voxels, results, &error) !=
            VOXELD_OK) {
            return failed("starting a call", &error);
        }
    }
    while (results->n_done < n) {
        if (poll(&ready, 1, POLL_MS) != 1) {
            (void)fputs("no callback in time\n", stderr);
            return EXIT_FAILURE;
        }
        (void)voxeld_dispatch(client, 0);
    }
    return results->n_equal == n ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct voxeld_options options = {.timeout_ms = POLL_MS};
    struct voxeld_voxelize_request request = {0};
    struct voxeld_client *client = NULL;
    struct voxeld_cloud *cloud = NULL;
    struct voxeld_voxels *voxels = NULL;
    struct voxeld_error error = {0};
    struct results results = {0};
    int result = EXIT_FAILURE;

    if (argc != 5) {
        (void)fputs("usage: foreign_client URL FILE SIZE N_ASYNC\n", stderr);
        return 2;
    }
    options.url = argv[1];
    if (voxeld_connect(&options, &client, &error) != VOXELD_OK ||
        voxeld_cloud_read_file(argv[2], NULL, &cloud, &error) != VOXELD_OK) {
        (void)failed("connecting and reading", &error);
        goto out;
    }
    request.clouds = cloud;
    request.n_clouds = 1;
    for (int axis = 0; axis < 3; axis++) {
        request.size_m[axis] = strtod(argv[3], NULL);
    }
    if (voxeld_voxelize(client, &request, &voxels, &error) != VOXELD_OK) {
        (void)failed("voxelize", &error);
        goto out;
    }
    results.first = voxels;
    result = run_async(client, &request, (size_t)strtoul(argv[4], NULL, 10), &results);
    (void)printf("{\"n_points\":%zu,\"n_voxels\":%zu,\"n_equal\":%zu,\"last\":[%" PRId32
                 ",%" PRId32 ",%" PRId32 "]}\n",
                 voxels->n_points, voxels->n_voxels, results.n_equal,
                 voxels->coords[4 * (voxels->n_voxels - 1) + 1],
                 voxels->coords[4 * (voxels->n_voxels - 1) + 2],
                 voxels->coords[4 * (voxels->n_voxels - 1) + 3]);
out:
    voxeld_voxels_free(voxels);
    voxeld_cloud_free(cloud);
    voxeld_close(client);
    return result;
}
