// SPDX-License-Identifier: Apache-2.0
/* What a robot waits for: clouds go to a running daemon, one request after the other, and come
 * back as a network's outputs, or, with --scene, are in a scene. Prints where the time of a
 * round trip goes by the reply's own account, beside nng's bare round trip of the same sizes.
 *
 *   bench_infer --url ipc:///path --cloud FILE [--cloud FILE]... [--format kitti]
 *               [--network NAME] [--output NAME]... [--half yes] [--repeat N]
 *               [--scene NAME [--voxel M] [--range M] [--durable always|everysec|off]]
 *               [--http PORT]
 *
 * Clouds take turns. With --scene the scene is made, carved to --range and dropped; the network,
 * if any, says the materials. With --http, the daemon's port of 127.0.0.1, also how long
 * versions took to be seen once they were made, or, of a durable scene, were on the disk. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/c/include/voxeld_net.h"
#include "client/c/include/voxeld_scene.h"
#include "tests/bench/server/bench_client.h"

enum {
    WARM_UP = 20,
    MAX_CLOUDS = 8,
    MAX_OUTPUTS = 8,
    PAGE_BYTES = 1 << 20
};

/* Parts of a request's time, milliseconds. */
enum part {
    PART_ROUND_TRIP,
    PART_OUTSIDE, /* the daemon: client, both messages */
    PART_QUEUED,
    PART_INSIDE, /* the daemon, but neither queued nor in the engine */
    PART_ENGINE,
    PART_VOXELIZE,
    PART_SETS,
    PART_LAYERS,
    PART_OUTPUTS,
    PART_DECODE,
    PART_CARVE,
    PART_EDIT,
    N_PARTS
};

static const char *const part_names[N_PARTS] = {
    "round trip",  "  outside the daemon", "  queued",        "  daemon without engine",
    "  engine",    "    decode, voxelize", "    sets",        "    layers",
    "    outputs", "    scan: decode",     "    scan: carve", "    scan: edit",
};

struct bench {
    const char *url;
    const char *paths[MAX_CLOUDS];
    int n_clouds;
    const char *format;
    const char *network;
    const char *outputs[MAX_OUTPUTS];
    size_t n_outputs;
    bool is_half;
    long n_repeat;
    const char *scene;
    double voxel_m;
    double range_m;
    const char *durable;
    long http_port; /* 0: without HTTP */
    struct nng_floor *floor;
    struct voxeld_cloud *clouds[MAX_CLOUDS];
    double *ms[N_PARTS]; /* n_repeat each */
    size_t n_reply;      /* bytes of the last reply's arrays */
};

static size_t n_bytes_of(const struct voxeld_infer_output *output)
{
    size_t n_values = 1;
    size_t n_bytes;

    for (size_t i = 0; i < output->n_axes; i++) {
        n_values *= output->shape[i];
    }
    n_bytes = n_values * (output->dtype == VOXELD_FLOAT16 ? 2 : 4);
    n_bytes += output->labels != NULL ? output->shape[0] * sizeof *output->labels : 0;
    n_bytes += output->coords != NULL ? output->shape[0] * 4 * sizeof(int32_t) : 0;
    return n_bytes;
}

static void note_network(const struct voxeld_network_timings *timings,
                         double parts[N_PARTS])
{
    parts[PART_VOXELIZE] = timings->voxelize_ms;
    parts[PART_SETS] = timings->sets_ms;
    parts[PART_LAYERS] = timings->layers_ms;
    parts[PART_OUTPUTS] = timings->outputs_ms;
}

static int infer(struct voxeld_client *client, struct bench *bench, int cloud,
                 double parts[N_PARTS])
{
    const struct voxeld_infer_request request = {
        .network = bench->network,
        .clouds = bench->clouds[cloud],
        .n_clouds = 1,
        .outputs = bench->outputs,
        .n_outputs = bench->n_outputs,
        .dtype = bench->is_half ? VOXELD_FLOAT16 : VOXELD_FLOAT32};
    struct voxeld_error error = {0};
    struct voxeld_inference *done;
    double begin = bench_now_ms();

    if (voxeld_infer(client, &request, &done, &error) != VOXELD_OK) {
        return bench_fail("infer", &error);
    }
    parts[PART_ROUND_TRIP] = bench_now_ms() - begin;
    parts[PART_OUTSIDE] = parts[PART_ROUND_TRIP] - done->total_ms;
    parts[PART_QUEUED] = done->queue_ms;
    parts[PART_INSIDE] = done->total_ms - done->queue_ms - done->engine_ms;
    parts[PART_ENGINE] = done->engine_ms;
    note_network(&done->timings, parts);
    bench->n_reply = 0;
    for (size_t i = 0; i < done->n_outputs; i++) {
        bench->n_reply += n_bytes_of(&done->outputs[i]);
    }
    voxeld_inference_free(done);
    return EXIT_SUCCESS;
}

static int integrate(struct voxeld_client *client, struct bench *bench, int cloud,
                     double parts[N_PARTS])
{
    const struct voxeld_scene_integrate_request request = {
        .scene = bench->scene,
        .cloud = bench->clouds[cloud],
        .carve = true,
        .max_range_m = bench->range_m,
        .material = bench->network != NULL ? 0 : 1,
        .network = bench->network};
    struct voxeld_scene_integrated done;
    struct voxeld_error error = {0};
    double begin = bench_now_ms();

    if (voxeld_scene_integrate(client, &request, &done, &error) != VOXELD_OK) {
        return bench_fail("integrate", &error);
    }
    parts[PART_ROUND_TRIP] = bench_now_ms() - begin;
    parts[PART_OUTSIDE] = parts[PART_ROUND_TRIP] - done.total_ms;
    parts[PART_QUEUED] = done.queue_ms;
    parts[PART_INSIDE] = done.total_ms - done.queue_ms - done.engine_ms;
    parts[PART_ENGINE] = done.engine_ms;
    parts[PART_DECODE] = done.decode_ms;
    parts[PART_CARVE] = done.carve_ms;
    parts[PART_EDIT] = done.edit_ms;
    note_network(&done.network, parts);
    return EXIT_SUCCESS;
}

/* Fetches the daemon's page of metrics, a string to be freed; NULL on failure. */
static char *get_metrics(long port)
{
    char ask[96];
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    char *page = calloc(1, PAGE_BYTES);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    size_t n = 0;
    ssize_t n_read = -1;
    int n_ask = snprintf(ask, sizeof ask,
                         "GET /metrics HTTP/1.0\r\nHost: 127.0.0.1:%ld\r\n\r\n", port);

    if (page != NULL && fd >= 0 &&
        connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 &&
        write(fd, ask, (size_t)n_ask) == n_ask) {
        do {
            n_read = read(fd, page + n, PAGE_BYTES - 1 - n);
            n += n_read > 0 ? (size_t)n_read : 0;
        } while (n_read > 0);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (n_read != 0 || n == 0) {
        free(page);
        return NULL;
    }
    return page;
}

/* Finds the number after the beginning of a line; 0 where there is none. */
static double number_after(const char *page, const char *begin)
{
    const char *at = page != NULL ? strstr(page, begin) : NULL;

    return at != NULL ? strtod(at + strlen(begin), NULL) : 0;
}

/* Prints how long versions waited to be seen between two readings of the metrics. */
static void print_publish(const char *before, const char *after)
{
    static const char *const bounds[] = {"2e-06", "5e-06",  "1e-05", "2e-05",
                                         "5e-05", "0.0001", "0.0005"};
    static const char *const name = "voxeld_scene_publish_seconds";
    char line[96];
    double n;
    double sum;

    (void)snprintf(line, sizeof line, "\n%s_count ", name);
    n = number_after(after, line) - number_after(before, line);
    (void)snprintf(line, sizeof line, "\n%s_sum ", name);
    sum = number_after(after, line) - number_after(before, line);
    if (!(n > 0)) {
        return;
    }
    (void)printf("published: %.0f versions, mean %.1f us; within", n, 1e6 * sum / n);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        (void)snprintf(line, sizeof line, "\n%s_bucket{le=\"%s\"} ", name, bounds[i]);
        (void)printf("%s %g us: %.0f", i > 0 ? "," : "", 1e6 * strtod(bounds[i], NULL),
                     number_after(after, line) - number_after(before, line));
    }
    (void)printf("\n");
}

static int create_scene(struct voxeld_client *client, const struct bench *bench)
{
    struct voxeld_scene_create_request request = {.scene = bench->scene,
                                                  .voxel_size_m = bench->voxel_m,
                                                  .material_bits = 8,
                                                  .track_free = true,
                                                  .durable = bench->durable != NULL};
    struct voxeld_error error = {0};

    if (bench->durable != NULL) {
        request.fsync = strcmp(bench->durable, "always") == 0     ? VOXELD_FSYNC_ALWAYS
                        : strcmp(bench->durable, "everysec") == 0 ? VOXELD_FSYNC_EVERYSEC
                                                                  : VOXELD_FSYNC_OFF;
    }
    return voxeld_scene_create(client, &request, NULL, &error) == VOXELD_OK
               ? EXIT_SUCCESS
               : bench_fail("scene", &error);
}

static int measure(struct voxeld_client *client, struct bench *bench)
{
    int result = EXIT_SUCCESS;

    for (long i = -WARM_UP; i < bench->n_repeat && result == EXIT_SUCCESS; i++) {
        double parts[N_PARTS] = {0};
        int cloud = (int)((i + WARM_UP) % bench->n_clouds);

        result = bench->scene != NULL ? integrate(client, bench, cloud, parts)
                                      : infer(client, bench, cloud, parts);
        for (int k = 0; k < N_PARTS && i >= 0; k++) {
            bench->ms[k][i] = parts[k];
        }
    }
    return result;
}

/* Sorts the round trips' series. */
static int report(struct bench *bench)
{
    const struct voxeld_cloud *cloud = bench->clouds[0];
    size_t n_request = cloud->n_points * cloud->point_step;
    long n = bench->n_repeat;

    (void)printf("%s%s%s: %zu points, %.2f MB a request, %.2f MB a reply, %ld requests\n",
                 bench->scene != NULL ? "integrate" : "infer",
                 bench->network != NULL ? " " : "",
                 bench->network != NULL ? bench->network : "", cloud->n_points,
                 1e-6 * (double)n_request, 1e-6 * (double)bench->n_reply, n);
    bench_print_head();
    for (int i = 0; i < N_PARTS; i++) {
        bench_print_row(part_names[i], bench->ms[i], n);
    }
    return bench_print_floor(bench->floor, n_request, bench->n_reply, n, bench->ms[0]);
}

static int run(struct voxeld_client *client, struct bench *bench)
{
    struct voxeld_error error = {0};
    double *block = calloc((size_t)bench->n_repeat, N_PARTS * sizeof *block);
    int result = block != NULL ? EXIT_SUCCESS : EXIT_FAILURE;

    for (int i = 0; i < N_PARTS && block != NULL; i++) {
        bench->ms[i] = block + i * bench->n_repeat;
    }
    for (int i = 0; i < bench->n_clouds && result == EXIT_SUCCESS; i++) {
        if (voxeld_cloud_read_file(bench->paths[i], bench->format, &bench->clouds[i],
                                   &error) != VOXELD_OK) {
            result = bench_fail(bench->paths[i], &error);
        }
    }
    if (result == EXIT_SUCCESS && bench->scene != NULL) {
        result = create_scene(client, bench);
    }
    if (result == EXIT_SUCCESS) {
        char *before = bench->http_port > 0 ? get_metrics(bench->http_port) : NULL;
        char *after;

        result = measure(client, bench);
        after = bench->http_port > 0 ? get_metrics(bench->http_port) : NULL;
        print_publish(before, after);
        free(before);
        free(after);
        if (bench->scene != NULL) {
            (void)voxeld_scene_drop(client, NULL, bench->scene, true, NULL, &error);
        }
    }
    if (result == EXIT_SUCCESS) {
        result = report(bench);
    }
    for (int i = 0; i < bench->n_clouds; i++) {
        voxeld_cloud_free(bench->clouds[i]);
    }
    free(block);
    return result;
}

static bool parse(int argc, char **argv, struct bench *bench)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (value == NULL) {
            return false;
        }
        if (strcmp(argv[i], "--url") == 0) {
            bench->url = value;
        } else if (strcmp(argv[i], "--cloud") == 0 && bench->n_clouds < MAX_CLOUDS) {
            bench->paths[bench->n_clouds++] = value;
        } else if (strcmp(argv[i], "--format") == 0) {
            bench->format = value;
        } else if (strcmp(argv[i], "--network") == 0) {
            bench->network = value;
        } else if (strcmp(argv[i], "--output") == 0 && bench->n_outputs < MAX_OUTPUTS) {
            bench->outputs[bench->n_outputs++] = value;
        } else if (strcmp(argv[i], "--half") == 0) {
            bench->is_half = strcmp(value, "yes") == 0;
        } else if (strcmp(argv[i], "--repeat") == 0) {
            bench->n_repeat = strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--scene") == 0) {
            bench->scene = value;
        } else if (strcmp(argv[i], "--voxel") == 0) {
            bench->voxel_m = strtod(value, NULL);
        } else if (strcmp(argv[i], "--range") == 0) {
            bench->range_m = strtod(value, NULL);
        } else if (strcmp(argv[i], "--durable") == 0) {
            bench->durable = value;
        } else if (strcmp(argv[i], "--http") == 0) {
            bench->http_port = strtol(value, NULL, 10);
        } else {
            return false;
        }
    }
    return bench->n_repeat > 0 && bench->n_clouds > 0 &&
           (bench->network != NULL || bench->scene != NULL);
}

int main(int argc, char **argv)
{
    struct bench bench = {.n_repeat = 200, .voxel_m = 0.1, .range_m = 50};
    struct voxeld_options options = {.timeout_ms = 20000};
    struct voxeld_client *client;
    struct voxeld_error error = {0};
    int result;

    if (!parse(argc, argv, &bench)) {
        (void)fputs(
            "usage: bench_infer --url URL --cloud FILE... [--format F] "
            "[--network NAME] [--output NAME]... [--half yes] [--repeat N] "
            "[--scene NAME [--voxel M] [--range M] [--durable FSYNC]] [--http PORT]\n",
            stderr);
        return 2;
    }
    bench.floor = nng_floor_start();
    if (bench.floor == NULL) {
        (void)fputs("cannot start the other process of the floor\n", stderr);
        return EXIT_FAILURE;
    }
    options.url = bench.url;
    if (voxeld_connect(&options, &client, &error) == VOXELD_OK) {
        result = run(client, &bench);
        voxeld_close(client);
    } else {
        result = bench_fail("connect", &error);
    }
    nng_floor_stop(bench.floor);
    return result;
}
