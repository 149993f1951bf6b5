// SPDX-License-Identifier: Apache-2.0
/* A robot's program that streams: each method with an asynchronous form is started N times before
 * an answer is waited for, and then called one after the other for another object of the same kind.
 * Both must give the same: what is started first takes effect first. Then a volume is watched.
 *
 * usage: stream_client URL NETWORK (a loaded one) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/include/voxeld_map.h"
#include "client/c/include/voxeld_net.h"
#include "client/c/include/voxeld_odometry.h"
#include "client/c/include/voxeld_posegraph.h"
#include "client/c/include/voxeld_volume_stream.h"
#include "client/c/include/voxeld_watch.h"

enum {
    N = 8, /* calls of a stream */
    N_POINTS = 4000,
    WIDTH = 80,
    HEIGHT = 60,
    CALL_MS = 60000,
    N_BYTES = 256 /* of what is compared of a result */
};

/* What a stream gave, in the order of its callbacks. */
struct seen {
    int n;
    int n_failed;
    unsigned char bytes[N][N_BYTES];
};

struct robot {
    struct voxeld_client *client;
    struct voxeld_cloud clouds[N];
    struct voxeld_array rows[N];
    float points[N][N_POINTS][3];
    float depth[N][HEIGHT * WIDTH];
    float row[N][4];
    int32_t key[N][3];
    const char *network;
};

static int failed(const char *what, const struct voxeld_error *error)
{
    (void)fprintf(stderr, "%s: %s %s: %s\n", what, voxeld_status_name(error->code),
                  error->field, error->message);
    return EXIT_FAILURE;
}

/* Notes n_bytes of a result, at most N_BYTES. */
static void note(struct seen *seen, const void *what, size_t n_bytes,
                 const struct voxeld_error *error)
{
    if (error != NULL) {
        seen->n_failed++;
        (void)failed("a call of a stream", error);
    } else {
        memcpy(seen->bytes[seen->n % N], what, n_bytes);
    }
    seen->n++;
}

static void note_pose(void *context, struct voxeld_odometry_pose *done,
                      const struct voxeld_error *error)
{
    double pose[8] = {0};

    if (done != NULL) {
        memcpy(pose, done->T_map_sensor.translation_m, 3 * sizeof *pose);
        memcpy(pose + 3, done->T_map_sensor.rotation, 4 * sizeof *pose);
        pose[7] = (double)done->n_inliers;
    }
    note(context, pose, sizeof pose, error);
    voxeld_odometry_pose_free(done);
}

static void note_change(void *context, struct voxeld_volume_change *done,
                        const struct voxeld_error *error)
{
    uint64_t counts[4] = {0};

    if (done != NULL) {
        counts[0] = done->n_touched;
        counts[1] = done->n_new;
        counts[2] = done->n_blocks;
        counts[3] = done->n_used;
    }
    note(context, counts, sizeof counts, error);
    voxeld_volume_change_free(done);
}

static void note_tracked(void *context, struct voxeld_volume_tracked *done,
                         const struct voxeld_error *error)
{
    double pose[9] = {0};

    if (done != NULL) {
        memcpy(pose, done->T_map_camera.translation_m, 3 * sizeof *pose);
        memcpy(pose + 3, done->T_map_camera.rotation, 4 * sizeof *pose);
        pose[7] = (double)done->n_blocks;
        /* Only the call's own request says that there is one. */
        pose[8] =
            done->depth_map.data != NULL ? ((const float *)done->depth_map.data)[0] : -1;
    }
    note(context, pose, sizeof pose, error);
    voxeld_volume_tracked_free(done);
}

static void note_track(void *context, struct voxeld_volume_track *done,
                       const struct voxeld_error *error)
{
    double pose[7] = {0};

    if (done != NULL) {
        memcpy(pose, done->T_map_camera.translation_m, 3 * sizeof *pose);
        memcpy(pose + 3, done->T_map_camera.rotation, 4 * sizeof *pose);
    }
    note(context, pose, sizeof pose, error);
    voxeld_volume_track_free(done);
}

static void note_nodes(void *context, struct voxeld_posegraph_change *done,
                       const struct voxeld_error *error)
{
    uint64_t counts[2] = {0};

    if (done != NULL) {
        counts[0] = done->n_nodes;
        counts[1] = done->n_points;
    }
    note(context, counts, sizeof counts, error);
    voxeld_posegraph_change_free(done);
}

static void note_rows(void *context, struct voxeld_map_result *done,
                      const struct voxeld_error *error)
{
    uint64_t counts[3] = {0};

    if (done != NULL) {
        counts[0] = done->n_entries;
        counts[1] = done->n;
        counts[2] = done->indices != NULL ? (uint64_t)done->indices[0] : UINT64_MAX;
    }
    note(context, counts, sizeof counts, error);
    voxeld_map_result_free(done);
}

static void note_inference(void *context, struct voxeld_inference *done,
                           const struct voxeld_error *error)
{
    double values[3] = {0};

    if (done != NULL && done->n_outputs > 0) {
        const struct voxeld_infer_output *output = &done->outputs[0];

        values[0] = (double)output->shape[0];
        values[1] = (double)output->n_axes;
        values[2] = output->values != NULL ? ((const float *)output->values)[0] : 0;
    }
    note(context, values, sizeof values, error);
    voxeld_inference_free(done);
}

/* --- one call each, waiting or not ------------------------------------------------------------- */

typedef enum voxeld_status call_once(struct robot *robot, const char *name, int i,
                                     bool waits, struct seen *seen,
                                     struct voxeld_error *error);

/* Ends a function of this kind: CALL(method, result's struct, its callback). */
#define CALL(method, result, callback)                                                   \
    struct result *done = NULL;                                                          \
    enum voxeld_status status;                                                           \
                                                                                         \
    if (!waits) {                                                                        \
        return method##_async(robot->client, &request, callback, seen, error);           \
    }                                                                                    \
    status = method(robot->client, &request, &done, error);                              \
    if (status == VOXELD_OK) {                                                           \
        callback(seen, done, NULL);                                                      \
    }                                                                                    \
    return status

static enum voxeld_status register_scan(struct robot *robot, const char *name, int i,
                                        bool waits, struct seen *seen,
                                        struct voxeld_error *error)
{
    const struct voxeld_odometry_register_request request = {.odometry = name,
                                                             .cloud = &robot->clouds[i]};

    CALL(voxeld_odometry_register, voxeld_odometry_pose, note_pose);
}

static const struct voxeld_volume_camera camera = {
    .width = WIDTH, .height = HEIGHT, .fx = 80, .cx = 39.5, .cy = 29.5};

static enum voxeld_status add_image(struct robot *robot, const char *name, int i,
                                    bool waits, struct seen *seen,
                                    struct voxeld_error *error)
{
    const struct voxeld_volume_integrate_request request = {
        .volume = name,
        .has_camera = true,
        .camera = camera,
        .depth = (const uint8_t *)robot->depth[i],
        .n_depth_bytes = sizeof robot->depth[i],
        .depth_type = VOXELD_VOLUME_DEPTH_FLOAT32};

    CALL(voxeld_volume_integrate, voxeld_volume_change, note_change);
}

static enum voxeld_status add_scan(struct robot *robot, const char *name, int i,
                                   bool waits, struct seen *seen,
                                   struct voxeld_error *error)
{
    const struct voxeld_volume_integrate_points_request request = {
        .volume = name, .cloud = &robot->clouds[i], .range_max_m = 10};

    CALL(voxeld_volume_integrate_points, voxeld_volume_change, note_change);
}

static enum voxeld_status track_and_add(struct robot *robot, const char *name, int i,
                                        bool waits, struct seen *seen,
                                        struct voxeld_error *error)
{
    const struct voxeld_volume_track_and_integrate_request request = {
        .volume = name,
        .has_camera = true,
        .camera = camera,
        .depth = (const uint8_t *)robot->depth[i],
        .n_depth_bytes = sizeof robot->depth[i],
        .depth_type = VOXELD_VOLUME_DEPTH_FLOAT32,
        .predict_depth = true};

    CALL(voxeld_volume_track_and_integrate, voxeld_volume_tracked, note_tracked);
}

/* Against the volume that the images before have made. */
static enum voxeld_status track(struct robot *robot, const char *name, int i, bool waits,
                                struct seen *seen, struct voxeld_error *error)
{
    const struct voxeld_volume_track_request request = {
        .volume = name,
        .has_camera = true,
        .camera = camera,
        .depth = (const uint8_t *)robot->depth[i],
        .n_depth_bytes = sizeof robot->depth[i],
        .depth_type = VOXELD_VOLUME_DEPTH_FLOAT32};

    CALL(voxeld_volume_track, voxeld_volume_track, note_track);
}

static enum voxeld_status add_node(struct robot *robot, const char *name, int i,
                                   bool waits, struct seen *seen,
                                   struct voxeld_error *error)
{
    const struct voxeld_posegraph_node node = {
        .id = (uint64_t)i + 1,
        .T_map_node = {.translation_m = {i}, .rotation = {0, 0, 0, 1}}};
    const struct voxeld_posegraph_add_request request = {
        .posegraph = name, .nodes = &node, .n_nodes = 1};

    CALL(voxeld_posegraph_add, voxeld_posegraph_change, note_nodes);
}

static enum voxeld_status add_keyframe(struct robot *robot, const char *name, int i,
                                       bool waits, struct seen *seen,
                                       struct voxeld_error *error)
{
    const struct voxeld_posegraph_add_keyframe_request request = {
        .posegraph = name, .id = (uint64_t)i + 1, .cloud = &robot->clouds[i]};

    CALL(voxeld_posegraph_add_keyframe, voxeld_posegraph_change, note_nodes);
}

static enum voxeld_status insert(struct robot *robot, const char *name, int i, bool waits,
                                 struct seen *seen, struct voxeld_error *error)
{
    const struct voxeld_map_insert_request request = {
        .map = name,
        .keys = {.dtype = VOXELD_INT32, .data = robot->key[i], .n = 1, .n_elements = 3},
        .values = &robot->rows[i],
        .n_values = 1};

    CALL(voxeld_map_insert, voxeld_map_result, note_rows);
}

static enum voxeld_status update(struct robot *robot, const char *name, int i, bool waits,
                                 struct seen *seen, struct voxeld_error *error)
{
    const struct voxeld_map_update_request request = {
        .map = name,
        .keys = {.dtype = VOXELD_INT32, .data = robot->key[i], .n = 1, .n_elements = 3},
        .values = &robot->rows[i],
        .n_values = 1,
        .combine = VOXELD_COMBINE_ADD,
        .insert_missing = true};

    CALL(voxeld_map_update, voxeld_map_result, note_rows);
}

static enum voxeld_status infer(struct robot *robot, const char *name, int i, bool waits,
                                struct seen *seen, struct voxeld_error *error)
{
    const struct voxeld_infer_request request = {
        .network = robot->network, .clouds = &robot->clouds[i], .n_clouds = 1};

    (void)name;
    CALL(voxeld_infer, voxeld_inference, note_inference);
}

/* --- the streams ------------------------------------------------------------------------------- */

static int compare_results(const void *a, const void *b)
{
    return memcmp(a, b, N_BYTES);
}

/* The same calls without waiting, for "NAMEa", and one after the other, for "NAMEb". Changes of one thing take
 * effect in the order in which they were sent, but the replies are taken by several threads of nng, so calls
 * may end in another order. */
static int compare(struct robot *robot, const char *name, call_once *call)
{
    struct seen later = {0};
    struct seen waited = {0};
    struct voxeld_error error = {0};
    char a[32];
    char b[32];

    (void)snprintf(a, sizeof a, "%sa", name);
    (void)snprintf(b, sizeof b, "%sb", name);
    for (int i = 0; i < N; i++) {
        if (call(robot, a, i, false, &later, &error) != VOXELD_OK) {
            return failed(a, &error);
        }
    }
    while (later.n < N && voxeld_dispatch(robot->client, CALL_MS) > 0) {
    }
    for (int i = 0; i < N; i++) {
        if (call(robot, b, i, true, &waited, &error) != VOXELD_OK) {
            return failed(b, &error);
        }
    }
    qsort(later.bytes, N, N_BYTES, compare_results);
    qsort(waited.bytes, N, N_BYTES, compare_results);
    if (later.n != N || later.n_failed > 0 ||
        memcmp(later.bytes, waited.bytes, sizeof later.bytes) != 0) {
        (void)fprintf(stderr, "%s: %d ended, %d failed, or they differ\n", name, later.n,
                      later.n_failed);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static int make_objects(struct robot *robot)
{
    static const char *const ends[] = {"a", "b"};
    const struct voxeld_map_array array = {
        .name = "row", .dtype = VOXELD_FLOAT32, .n_elements = 4};
    struct voxeld_error error = {0};
    struct voxeld_client *client = robot->client;

    for (size_t i = 0; i < 2; i++) {
        char name[4][32];
        const struct voxeld_odometry_create_request odometry = {.odometry = name[0],
                                                                .max_range_m = 20};
        struct voxeld_volume_create_request volume = {.volume = name[1],
                                                      .voxel_size_m = 0.05};
        const struct voxeld_posegraph_create_request graph = {.posegraph = name[2]};
        const struct voxeld_map_create_request map = {
            .map = name[3], .arrays = &array, .n_arrays = 1};
        static const char *const volumes[] = {"images", "scans", "tracked"};

        (void)snprintf(name[0], sizeof name[0], "odometry%s", ends[i]);
        (void)snprintf(name[2], sizeof name[2], "graph%s", ends[i]);
        (void)snprintf(name[3], sizeof name[3], "map%s", ends[i]);
        for (size_t k = 0; k < 3; k++) {
            (void)snprintf(name[1], sizeof name[1], "%s%s", volumes[k], ends[i]);
            if (voxeld_volume_create(client, &volume, NULL, &error) != VOXELD_OK) {
                return failed(name[1], &error);
            }
        }
        if (voxeld_odometry_create(client, &odometry, NULL, &error) != VOXELD_OK ||
            voxeld_posegraph_create(client, &graph, NULL, &error) != VOXELD_OK ||
            voxeld_map_create(client, &map, NULL, &error) != VOXELD_OK) {
            return failed("what is streamed into", &error);
        }
    }
    return EXIT_SUCCESS;
}

/* A point on the walls of a room of 16 x 10 x 3 metres, as seen 0.1 m further on each time. */
static void fill_point(uint64_t *state, int i, float out[3])
{
    static const float size_m[3] = {16, 10, 3};
    int axis;

    for (int k = 0; k < 3; k++) {
        *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        out[k] = ((float)(*state >> 40) / 16777216.0f - 0.5f) * size_m[k];
    }
    axis = (int)(*state >> 33 & 1);
    out[axis] = out[axis] < 0 ? -size_m[axis] / 2 : size_m[axis] / 2;
    out[0] -= 0.1f * (float)i;
}

static void fill(struct robot *robot)
{
    static const struct voxeld_field fields[] = {
        {.name = "x", .offset = 0, .dtype = VOXELD_FLOAT32},
        {.name = "y", .offset = 4, .dtype = VOXELD_FLOAT32},
        {.name = "z", .offset = 8, .dtype = VOXELD_FLOAT32},
    };
    uint64_t state = 1;

    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N_POINTS; k++) {
            fill_point(&state, i, robot->points[i][k]);
        }
        for (int k = 0; k < WIDTH * HEIGHT; k++) {
            robot->depth[i][k] = 1.5f + 0.2f * sinf((float)(k % WIDTH + i) / 7) *
                                            cosf((float)(k / WIDTH) / 5);
        }
        for (int k = 0; k < 4; k++) {
            robot->row[i][k] = (float)(i + k);
        }
        robot->key[i][0] = i % 5; /* some again */
        robot->clouds[i] = (struct voxeld_cloud){.fields = fields,
                                                 .n_fields = 3,
                                                 .point_step = 12,
                                                 .data = robot->points[i],
                                                 .n_points = N_POINTS};
        robot->rows[i] = (struct voxeld_array){.name = "row",
                                               .dtype = VOXELD_FLOAT32,
                                               .data = robot->row[i],
                                               .n = 1,
                                               .n_elements = 4};
    }
}

/* --- a watch ------------------------------------------------------------------------------ */

/* What the callback of a watch was given. */
struct watch_seen {
    bool has_ended;
    enum voxeld_watch_kind kind;
    uint64_t version;
    uint64_t n_blocks;
};

static void take_watched(void *context, struct voxeld_volume_watched *done,
                         const struct voxeld_error *error)
{
    struct watch_seen *result = context;

    result->has_ended = true;
    if (error != NULL) {
        (void)failed("a watch", error);
        return;
    }
    result->kind = done->kind;
    result->version = done->to_version;
    result->n_blocks = done->n_blocks;
    voxeld_volume_watched_free(done);
}

/* A watch that waits is called back when an image of the same client changes the volume. */
static int watch(struct robot *robot)
{
    struct voxeld_volume_watch_request request = {
        .volume = "imagesa", .keys_only = true, .max_bytes = 1 << 20};
    struct voxeld_volume_watched *first = NULL;
    struct voxeld_error error = {0};
    struct watch_seen result = {0};
    struct seen seen = {0};

    if (voxeld_volume_watch(robot->client, &request, &first, &error) != VOXELD_OK) {
        return failed("volume_watch", &error);
    }
    request.has_after = first->has_next;
    request.after = first->next;
    request.timeout_ms = CALL_MS / 2;
    voxeld_volume_watched_free(first);
    if (voxeld_volume_watch_async(robot->client, &request, take_watched, &result,
                                  &error) != VOXELD_OK ||
        add_image(robot, "imagesa", 0, true, &seen, &error) != VOXELD_OK) {
        return failed("volume_watch_async", &error);
    }
    while (!result.has_ended && voxeld_dispatch(robot->client, CALL_MS) > 0) {
    }
    if (result.kind != VOXELD_WATCH_BLOCKS || result.n_blocks == 0 ||
        result.version <= request.after.version) {
        (void)fprintf(stderr, "the watch gave kind %d of %d blocks\n", (int)result.kind,
                      (int)result.n_blocks);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static struct robot robot;
    static const struct {
        const char *name;
        call_once *call;
    } streams[] = {{"odometry", register_scan},
                   {"images", add_image},
                   {"scans", add_scan},
                   {"tracked", track_and_add},
                   {"images", track},
                   {"graph", add_node},
                   {"graph", add_keyframe},
                   {"map", insert},
                   {"map", update},
                   {"", infer}};
    struct voxeld_options options = {.timeout_ms = CALL_MS};
    struct voxeld_error error = {0};
    int result;

    if (argc != 3) {
        return 2;
    }
    fill(&robot);
    options.url = argv[1];
    robot.network = argv[2];
    if (voxeld_connect(&options, &robot.client, &error) != VOXELD_OK) {
        return failed("connect", &error);
    }
    result = make_objects(&robot);
    for (size_t i = 0; i < sizeof streams / sizeof *streams && result == EXIT_SUCCESS;
         i++) {
        result = compare(&robot, streams[i].name, streams[i].call);
    }
    if (result == EXIT_SUCCESS) {
        result = watch(&robot);
    }
    voxeld_close(robot.client);
    return result;
}
