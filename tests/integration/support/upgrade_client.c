// SPDX-License-Identifier: Apache-2.0
/* A robot's program on libvoxeld that adds 1 to the rows of one key of a map, again and again
 * until its standard input ends, while daemons come and go: it repeats a call that got no answer
 * as voxeld.h says. Each time it prints how often it has added, and how often it has repeated.
 *
 * usage: upgrade_client URL MAP KEY */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/c/include/voxeld_map.h"

#define CALL_MS 60000
#define REPEAT_MS 600000

static int failed(const struct voxeld_error *error)
{
    (void)fprintf(stderr, "%s: %s\n", voxeld_status_name(error->code), error->message);
    return EXIT_FAILURE;
}

static bool is_over(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};

    return poll(&input, 1, 0) != 0;
}

int main(int argc, char **argv)
{
    struct voxeld_client *client = NULL;
    struct voxeld_error error = {0};
    struct voxeld_options options = {.timeout_ms = CALL_MS};
    const uint64_t one = 1;
    int32_t key[3] = {0};
    uint64_t n_repeats = 0;
    struct voxeld_array count = {
        .name = "count", .dtype = VOXELD_UINT64, .data = &one, .n = 1};
    struct voxeld_map_update_request add = {
        .keys = {.dtype = VOXELD_INT32, .data = key, .n = 1, .n_elements = 3},
        .values = &count,
        .n_values = 1,
        .combine = VOXELD_COMBINE_ADD,
        .insert_missing = true};

    if (argc != 4) {
        return 2;
    }
    options.url = argv[1];
    add.map = argv[2];
    key[0] = (int32_t)strtol(argv[3], NULL, 10);
    if (voxeld_connect(&options, &client, &error) != VOXELD_OK) {
        return failed(&error);
    }
    for (uint64_t n = 1; !is_over(); n++) {
        struct voxeld_retry retry = {.total_ms = REPEAT_MS};
        enum voxeld_status status;

        do {
            n_repeats += add.call.sequence != 0 ? 1 : 0;
            status = voxeld_map_update(client, &add, NULL, &error);
        } while (voxeld_retry(&retry, &add.call, status, &error));
        if (status != VOXELD_OK) {
            voxeld_close(client);
            return failed(&error);
        }
        (void)printf("%" PRIu64 " %" PRIu64 "\n", n, n_repeats);
        (void)fflush(stdout);
    }
    voxeld_close(client);
    return EXIT_SUCCESS;
}
