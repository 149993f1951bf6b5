// SPDX-License-Identifier: Apache-2.0
/* libvoxeld's calls on scenes, against a scripted peer. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/client/client_requests.h"

enum {
    N_ROWS = 4
};

static const double places[6 * N_ROWS] = {1, 2, 3};

static const struct voxeld_array rows_of_3 = {
    .dtype = VOXELD_FLOAT64, .data = places, .n = N_ROWS, .n_elements = 3};

static void test_scene_calls_hand_out_what_the_server_says(void)
{
    static const struct voxeld_scene_material palette[] = {{NULL, 0}, {"grass", 0xff7f}};
    struct voxeld_scene_create_request create = {.scene = "yard",
                                                 .voxel_size_m = 0.25,
                                                 .depth = 12,
                                                 .material_bits = 4,
                                                 .track_free = true,
                                                 .has_origin = true,
                                                 .origin_m = {0, -2.5, 0},
                                                 .palette = palette,
                                                 .n_palette = 2};
    struct voxeld_scenes *scenes;
    const struct voxeld_scene_info *scene;
    Voxeld__V1__Request *arrived;
    struct pair pair;
    bool existed = false;

    REQUIRE(pair_start(&pair));
    REQUIRE(voxeld_scene_create(pair.client, &create, &scenes, NULL) == VOXELD_OK);
    scene = &scenes->scenes[0];
    CHECK(scenes->existed && scenes->n_scenes == 1 && scene->depth == 12);
    CHECK(scene->voxel_size_m == 0.25 && scene->origin_m[1] == -2.5 && scene->track_free);
    CHECK_STR(scene->name, "yard");
    CHECK_STR(scene->frame_id, "map");
    CHECK_INT(scene->n_palette, 2);
    CHECK_STR(scene->palette[1].name, "grass");
    CHECK_INT(scene->palette[1].rgb, 0xff7f);
    voxeld_scenes_free(scenes);
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->header->sequence > 0);
    CHECK_INT(arrived->scene_create->spec->n_palette, 2);
    CHECK(arrived->scene_create->spec->origin->y == -2.5);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    create.has_origin = false;
    CHECK_INT(voxeld_scene_create(pair.client, &create, NULL, NULL), VOXELD_OK);
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->scene_create->spec->origin == NULL);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    REQUIRE(voxeld_scene_get(pair.client, NULL, "yard", &scenes, NULL) == VOXELD_OK);
    CHECK_INT(scenes->scenes[0].n_occupied, 1234567);
    CHECK_INT(strlen(scenes->scenes[0].digest), 32);
    voxeld_scenes_free(scenes);
    REQUIRE(voxeld_scene_list(pair.client, NULL, &scenes, NULL) == VOXELD_OK);
    CHECK(scenes->n_scenes == 1 && scenes->n_bytes == 1000);
    voxeld_scenes_free(scenes);
    CHECK_INT(voxeld_scene_drop(pair.client, NULL, "yard", true, &existed, NULL),
              VOXELD_OK);
    CHECK(existed);
    pair_stop(&pair);
}

/* Makes a list with each shape once; false without memory. */
static bool each_shape(struct voxeld_scene_operations *list)
{
    static const int32_t voxels[] = {1, 2, 3, 4, 5, 6};
    static const uint16_t materials[] = {7, 8};
    static const float heights[] = {1, 2, 3};

    for (int shape = VOXELD_SHAPE_BOX; shape <= VOXELD_SHAPE_HEIGHTFIELD; shape++) {
        struct voxeld_scene_operation *op =
            voxeld_scene_add(list, (enum voxeld_scene_shape)shape);

        if (op == NULL) {
            return false;
        }
        op->material = (uint32_t)shape;
    }
    list->operations[0].in.box = (struct voxeld_scene_box){{1, 2, 3}, {4, 5, 6}};
    list->operations[0].action = VOXELD_SCENE_COPY;
    list->operations[0].copy = (struct voxeld_scene_copy){
        .from = {9, 8, 7}, .matrix = {0, 1, 0, 1, 0, 0, 0, 0, -1}, .copy_empty = true};
    list->operations[1].in.ball = (struct voxeld_scene_ball){
        .centre = {0, 0, 5}, .radius = 2, .noise = 0.5, .noise_cell_bits = 3};
    list->operations[2].in.capsule =
        (struct voxeld_scene_capsule){.b = {1, 0, 0}, .radius = 3};
    list->operations[3].in.half_space =
        (struct voxeld_scene_half_space){.normal = {0, 0, 1}, .offset = -4};
    list->operations[3].action = VOXELD_SCENE_ERODE;
    list->operations[3].threshold = 5;
    list->operations[4].in.points = (struct voxeld_scene_points){
        .points = {.dtype = VOXELD_INT32, .data = voxels, .n = 2, .n_elements = 3},
        .materials = {.dtype = VOXELD_UINT16, .data = materials, .n = 2}};
    list->operations[5].in.heightfield = (struct voxeld_scene_heightfield){
        .heights = {.dtype = VOXELD_FLOAT32, .data = heights, .n = 3, .n_elements = 1},
        .cell = 0.5,
        .low_z = -1};
    return true;
}

static void check_operations(Voxeld__V1__SceneOperation *const *ops)
{
    CHECK(ops[0]->box->high->z == 6 && ops[0]->copy->from->x == 9);
    CHECK(ops[0]->copy->n_matrix == 9 && ops[0]->copy->matrix[8] == -1);
    CHECK_INT(ops[0]->action, VOXELD__V1__SCENE_ACTION__SCENE_COPY);
    CHECK(ops[1]->ball->centre->z == 5 && ops[1]->ball->noise == 0.5);
    CHECK(ops[1]->copy == NULL && ops[1]->material == 2);
    CHECK(ops[2]->capsule->b->x == 1 && ops[2]->capsule->radius == 3);
    CHECK(ops[3]->half_space->normal->z == 1 && ops[3]->half_space->offset == -4);
    CHECK_INT(ops[3]->threshold, 5);
    CHECK_INT(ops[4]->points->points->shape[1], 3);
    CHECK_INT(ops[4]->points->points->data.len, 24);
    CHECK_INT(ops[4]->points->materials->n_shape, 1);
    CHECK_INT(ops[5]->heightfield->heights->n_shape, 2);
    CHECK_INT(ops[5]->heightfield->heights->shape[1], 1);
    CHECK(ops[5]->heightfield->low_z == -1);
}

static void test_edit_sends_every_shape_and_says_what_it_did(void)
{
    struct voxeld_scene_operations list = {0};
    struct voxeld_scene_edit_request request = {
        .scene = "yard", .in_voxels = true, .if_version = 41};
    struct voxeld_scene_edited done;
    Voxeld__V1__Request *arrived;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    REQUIRE(each_shape(&list));
    request.operations = list.operations;
    request.n_operations = list.n;
    REQUIRE(voxeld_scene_edit(pair.client, &request, &done, NULL) == VOXELD_OK);
    CHECK(done.change.version == 42 && done.change.n_added == 1000 && !done.replayed);
    CHECK(done.change.n_removed == 20 && done.change.n_changed == 3);
    CHECK(done.change.n_freed == 4 && done.change.n_new_nodes == 5);
    CHECK(done.n_outside == list.n && done.engine_ms == 1.5);
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->header->sequence > 0 && arrived->scene_edit->in_voxels);
    REQUIRE(arrived->scene_edit->n_operations == 6);
    check_operations(arrived->scene_edit->operations);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    atomic_store(&pair.peer.replays, 1);
    REQUIRE(voxeld_scene_edit(pair.client, &request, &done, NULL) == VOXELD_OK);
    CHECK(done.replayed);
    CHECK_INT(voxeld_scene_edit(pair.client, &request, NULL, NULL), VOXELD_OK);
    voxeld_scene_clear(&list);
    CHECK(list.n == 0 && list.operations == NULL);
    pair_stop(&pair);
}

static void test_operations_grow_and_stay_as_they_are(void)
{
    struct voxeld_scene_operations list = {0};

    for (uint32_t i = 0; i < 1000; i++) {
        struct voxeld_scene_operation *op = voxeld_scene_add(&list, VOXELD_SHAPE_BALL);

        REQUIRE(op != NULL);
        CHECK(op->material == 0 && op->in.ball.radius == 0);
        op->material = i;
    }
    CHECK_INT(list.n, 1000);
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK_INT(list.operations[i].material, i);
    }
    voxeld_scene_clear(&list);
    voxeld_scene_clear(&list);
}

static void test_integrate_sends_a_cloud_with_its_pose(void)
{
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_scene_integrate_request request = {.scene = "yard",
                                                     .cloud = &cloud,
                                                     .carve = true,
                                                     .max_range_m = 50,
                                                     .rule = VOXELD_MATERIAL_RAMP,
                                                     .field = "ring",
                                                     .high = 8,
                                                     .if_version = 4};
    struct voxeld_scene_integrated done;
    struct voxeld_error error = {0};
    Voxeld__V1__Request *arrived;
    struct pair pair;

    cloud.stamp_ns = 99;
    cloud.T_map_sensor.translation_m[2] = 1.5;
    REQUIRE(pair_start(&pair));
    REQUIRE(voxeld_scene_integrate(pair.client, &request, &done, NULL) == VOXELD_OK);
    CHECK(done.change.version == 5 && done.n_points == N_POINTS && done.stamp_ns == 99);
    CHECK(done.carve_ms == 0.5 && done.engine_ms == 2.5 && !done.replayed);
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->header->sequence > 0);
    CHECK(arrived->scene_integrate->cloud->t_map_sensor->translation->z == 1.5);
    CHECK(arrived->scene_integrate->carve->max_range_m == 50);
    CHECK_STR(arrived->scene_integrate->rule->field, "ring");
    CHECK(arrived->scene_integrate->rule->high == 8);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    request.carve = false;
    CHECK_INT(voxeld_scene_integrate(pair.client, &request, NULL, NULL), VOXELD_OK);
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->scene_integrate->carve == NULL);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    cloud.fields = NULL;
    CHECK_INT(voxeld_scene_integrate(pair.client, &request, &done, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "cloud.fields");
    request.cloud = NULL;
    CHECK_INT(voxeld_scene_integrate(pair.client, &request, &done, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "cloud");
    pair_stop(&pair);
}

/* What callbacks got, in their order. */
struct added {
    int n_done;
    uint64_t n_points;
    enum voxeld_status code;
};

static void note_added(void *context, const struct voxeld_scene_integrated *done,
                       const struct voxeld_error *error)
{
    struct added *added = context;

    CHECK((done == NULL) == (error != NULL));
    added->n_done++;
    added->n_points += done != NULL ? done->n_points : 0;
    added->code = error != NULL ? error->code : VOXELD_OK;
}

static void test_integrate_async_has_many_scans_under_way_on_one_connection(void)
{
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_scene_integrate_request request = {.scene = "yard", .cloud = &cloud};
    struct voxeld_error error = {0};
    struct added added = {0};
    Voxeld__V1__Request *arrived;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    request.call.timeout_ms = PATIENT_MS;
    atomic_store(&pair.peer.mode, PEER_HOLD);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(
            voxeld_scene_integrate_async(pair.client, &request, note_added, &added, NULL),
            VOXELD_OK);
    }
    CHECK_INT(voxeld_dispatch(pair.client, 0), 0);
    peer_release(&pair.peer);
    while (added.n_done < 3) {
        REQUIRE(voxeld_dispatch(pair.client, PATIENT_MS) > 0);
    }
    CHECK_INT(added.code, VOXELD_OK);
    CHECK_INT(added.n_points, 3 * N_POINTS);
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->header->sequence > 0);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    CHECK_INT(voxeld_scene_integrate_async(pair.client, &request, NULL, &added, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "callback");
    request.cloud = NULL;
    CHECK_INT(
        voxeld_scene_integrate_async(pair.client, &request, note_added, &added, &error),
        VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "cloud");
    CHECK_INT(added.n_done, 3);
    pair_stop(&pair);
}

static void test_integrate_sends_a_network_and_what_its_labels_become(void)
{
    struct voxeld_cloud cloud = some_cloud();
    const struct voxeld_scene_label labels[] = {
        {.label = 3, .material = -1}, {.label_name = "road", .material_name = "ground"}};
    struct voxeld_scene_integrate_request request = {.scene = "yard",
                                                     .cloud = &cloud,
                                                     .network = "unet",
                                                     .labels = labels,
                                                     .n_labels = 2,
                                                     .output = "labels",
                                                     .expect_digest = "01234567"};
    const Voxeld__V1__SceneIntegrateRequest *sent;
    struct voxeld_scene_integrated done;
    struct voxeld_error error = {0};
    Voxeld__V1__Request *arrived;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    REQUIRE(voxeld_scene_integrate(pair.client, &request, &done, NULL) == VOXELD_OK);
    CHECK(done.n_dropped == 2 && done.network.layers_ms == 1.25);
    CHECK_INT(done.n_relabelled, 3);
    CHECK_INT(done.network.n_items, 2);
    CHECK_STR(done.digest, "0123456789abcdef");
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    sent = arrived->scene_integrate;
    CHECK_STR(sent->network, "unet");
    CHECK_STR(sent->output, "labels");
    CHECK_STR(sent->expect_digest, "01234567");
    CHECK(sent->rule == NULL);
    REQUIRE(sent->n_label_to_material == 2);
    CHECK(sent->label_to_material[0]->label == 3 &&
          sent->label_to_material[0]->material == -1);
    CHECK_STR(sent->label_to_material[1]->label_name, "road");
    CHECK_STR(sent->label_to_material[1]->material_name, "ground");
    voxeld__v1__request__free_unpacked(arrived, NULL);
    request.material = 2; /* for the server to refuse */
    CHECK_INT(voxeld_scene_integrate(pair.client, &request, NULL, NULL), VOXELD_OK);
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->scene_integrate->rule != NULL);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    request.labels = NULL;
    CHECK_INT(voxeld_scene_integrate(pair.client, &request, &done, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "label_to_material");
    pair_stop(&pair);
}

static void test_queries_hand_out_checked_arrays(void)
{
    static const int32_t voxels[3];
    const struct voxeld_array one_voxel = {
        .dtype = VOXELD_INT32, .data = voxels, .n = 1, .n_elements = 3};
    const struct voxeld_array origin = {
        .dtype = VOXELD_FLOAT64, .data = places, .n = 1, .n_elements = 3};
    const struct voxeld_array balls = {
        .dtype = VOXELD_FLOAT64, .data = places, .n = 2, .n_elements = 4};
    const struct voxeld_array boxes = {
        .dtype = VOXELD_FLOAT64, .data = places, .n = 3, .n_elements = 6};
    struct voxeld_scene_found *f;
    Voxeld__V1__Request *arrived;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    atomic_store(&pair.peer.scene_version, 6);
    REQUIRE(voxeld_scene_values(pair.client, NULL, "yard", &one_voxel, &f, NULL) ==
            VOXELD_OK);
    CHECK(f->n == 1 && f->states[0] == VOXELD_VOXEL_OCCUPIED && f->materials[0] == 0);
    CHECK(f->version == 6 && f->generation == 2 && f->engine_ms == 0.25);
    CHECK(f->distances == NULL && f->n_occupied == NULL);
    voxeld_scene_found_free(f);
    REQUIRE(voxeld_scene_cast_rays(pair.client, NULL, "yard", &origin, &rows_of_3, 30, &f,
                                   NULL) == VOXELD_OK);
    CHECK(f->n == N_ROWS && f->n_hits == N_ROWS && f->distances[3] == 3);
    CHECK(f->voxels[3 * 3 + 2] == 3 && f->normals[0] == -1 && f->materials[2] == 2);
    voxeld_scene_found_free(f);
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->header->sequence == 0 && arrived->scene_cast_rays->max_range_m == 30);
    CHECK_INT(arrived->scene_cast_rays->origins->n_shape, 2);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    REQUIRE(voxeld_scene_nearest(pair.client, NULL, "yard", &rows_of_3, 2, &f, NULL) ==
            VOXELD_OK);
    CHECK(f->n_hits == N_ROWS && f->materials == NULL && f->normals == NULL);
    voxeld_scene_found_free(f);
    REQUIRE(voxeld_scene_overlap(pair.client, NULL, "yard", &balls, false, &f, NULL) ==
            VOXELD_OK);
    CHECK(f->n == 2 && f->states[1] == 2 && f->n_occupied == NULL);
    voxeld_scene_found_free(f);
    REQUIRE(voxeld_scene_overlap(pair.client, NULL, "yard", &boxes, true, &f, NULL) ==
            VOXELD_OK);
    CHECK(f->n == 3 && f->n_occupied[2] == 12 && f->n_free[0] == 10);
    voxeld_scene_found_free(f);
    pair_stop(&pair);
}

static void test_export_hands_out_cells_boxes_and_bytes(void)
{
    struct voxeld_scene_export_request request = {
        .scene = "yard", .first = 1, .with_counts = true, .level = 3};
    struct voxeld_scene_cells *c;
    Voxeld__V1__Request *arrived;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    REQUIRE(voxeld_scene_export(pair.client, &request, &c, NULL) == VOXELD_OK);
    CHECK(c->n == PEER_SCENE_PART && c->n_cells == PEER_SCENE_CELLS);
    CHECK(c->cells[2] == 1 && c->materials[1] == 2 && c->counts[0] == 11);
    CHECK(c->origin_m[1] == -2.5 && c->cell_size_m == 0.25 && c->ply == NULL);
    voxeld_scene_cells_free(c);
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->scene_export->box == NULL && arrived->scene_export->level == 3);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    request.format = VOXELD_SCENE_DENSE;
    request.has_box = true;
    request.box.high[0] = 7;
    REQUIRE(voxeld_scene_export(pair.client, &request, &c, NULL) == VOXELD_OK);
    CHECK(c->n == 24 && c->shape[0] == 2 && c->shape[2] == 4 && c->low_cell[2] == -2);
    CHECK(c->states[23] == 2 && c->materials[23] == 23 && c->cells == NULL);
    voxeld_scene_cells_free(c);
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->scene_export->box->high->x == 7);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    request.format = VOXELD_SCENE_PLY;
    REQUIRE(voxeld_scene_export(pair.client, &request, &c, NULL) == VOXELD_OK);
    CHECK(c->n_ply_bytes > 24 && memcmp(c->ply, "ply\n", 4) == 0);
    voxeld_scene_cells_free(c);
    pair_stop(&pair);
}

static void test_exported_file_is_put_together_of_parts_of_one_version(void)
{
    static const char header[] =
        "ply\nformat binary_little_endian 1.0\nelement vertex 5\n"
        "property float x\nproperty float y\nproperty float z\nend_header\n";
    struct voxeld_scene_export_request request = {.scene = "yard", .limit = 1};
    struct voxeld_error error = {0};
    char path[64];
    char beside[80];
    char text[512] = "";
    uint64_t n_cells = 0;
    struct stat there;
    struct pair pair;
    int fd;

    (void)snprintf(path, sizeof path, "/tmp/voxeld-scene-%ld.ply", (long)getpid());
    (void)snprintf(beside, sizeof beside, "%s.part", path);
    REQUIRE(pair_start(&pair));
    REQUIRE(voxeld_scene_export_file(pair.client, &request, path, &n_cells, &error) ==
            VOXELD_OK);
    CHECK_INT(n_cells, PEER_SCENE_CELLS);
    CHECK_INT(atomic_load(&pair.peer.n_voxelize), 3);
    fd = open(path, O_RDONLY);
    CHECK_INT(read(fd, text, sizeof text - 1), sizeof header - 1 + 5 * 12);
    (void)close(fd);
    CHECK(memcmp(text, header, sizeof header - 1) == 0);
    CHECK_STR(text + sizeof header - 1, "aaaaaaaaaaaabbbbbbbbbbbbccccccccccccdddddddddddd"
                                        "eeeeeeeeeeee");
    (void)unlink(path);
    atomic_store(&pair.peer.scene_changes, 1);
    CHECK_INT(voxeld_scene_export_file(pair.client, &request, path, NULL, &error),
              VOXELD_ABORTED);
    CHECK(stat(path, &there) != 0 && stat(beside, &there) != 0);
    atomic_store(&pair.peer.scene_changes, 0);
    CHECK_INT(
        voxeld_scene_export_file(pair.client, &request, "/nowhere/x.ply", NULL, &error),
        VOXELD_UNAVAILABLE);
    CHECK_STR(error.field, "path");
    CHECK_INT(voxeld_scene_export_file(pair.client, &request, NULL, NULL, &error),
              VOXELD_INVALID_ARGUMENT);
    pair_stop(&pair);
}

/* Calls every method once; returns how many were OK. The last failure is in *error. */
static int call_all(struct voxeld_client *client, const char *path,
                    struct voxeld_error *error)
{
    const struct voxeld_array boxes = {
        .dtype = VOXELD_FLOAT64, .data = places, .n = N_ROWS, .n_elements = 6};
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_scene_edit_request edit = {0};
    struct voxeld_scene_integrate_request integrate = {.cloud = &cloud};
    struct voxeld_scene_export_request cells = {.with_counts = true};
    struct voxeld_scene_export_request dense = {.format = VOXELD_SCENE_DENSE};
    struct voxeld_scene_found *f = NULL;
    struct voxeld_scene_cells *c = NULL;
    struct voxeld_scenes *scenes = NULL;
    int n = 0;

    n += voxeld_scene_list(client, NULL, &scenes, error) == VOXELD_OK;
    voxeld_scenes_free(scenes);
    n += voxeld_scene_edit(client, &edit, NULL, error) == VOXELD_OK;
    n += voxeld_scene_integrate(client, &integrate, NULL, error) == VOXELD_OK;
    n += voxeld_scene_values(client, NULL, "", &rows_of_3, &f, error) == VOXELD_OK;
    voxeld_scene_found_free(f);
    n += voxeld_scene_cast_rays(client, NULL, "", &rows_of_3, &rows_of_3, 0, &f, error) ==
         VOXELD_OK;
    voxeld_scene_found_free(f);
    n += voxeld_scene_nearest(client, NULL, "", &rows_of_3, 1, &f, error) == VOXELD_OK;
    voxeld_scene_found_free(f);
    n += voxeld_scene_overlap(client, NULL, "", &boxes, true, &f, error) == VOXELD_OK;
    voxeld_scene_found_free(f);
    n += voxeld_scene_export(client, &cells, &c, error) == VOXELD_OK;
    voxeld_scene_cells_free(c);
    n += voxeld_scene_export(client, &dense, &c, error) == VOXELD_OK;
    voxeld_scene_cells_free(c);
    n += voxeld_scene_export_file(client, &cells, path, NULL, error) == VOXELD_OK;
    return n;
}

static void test_flawed_scene_answers_are_internal(void)
{
    char path[64];
    struct pair pair;

    (void)snprintf(path, sizeof path, "/tmp/voxeld-flaw-%ld.ply", (long)getpid());
    REQUIRE(pair_start(&pair));
    for (int flaw = 0; flaw < N_SCENE_FLAWS; flaw++) {
        struct voxeld_error error = {0};
        int n_ok;

        atomic_store(&pair.peer.scene_flaw, flaw);
        n_ok = call_all(pair.client, path, &error);
        if (flaw == SCENE_FLAW_NONE) {
            CHECK_INT(n_ok, 10);
            continue;
        }
        CHECK(n_ok < 10);
        CHECK_INT(error.code, VOXELD_INTERNAL);
        CHECK(error.request_id[0] != '\0');
    }
    (void)unlink(path);
    pair_stop(&pair);
}

static void test_impossible_scene_requests_are_refused_unsent(void)
{
    const struct voxeld_array nowhere = {
        .dtype = VOXELD_FLOAT64, .n = 1, .n_elements = 3};
    const struct voxeld_array wide = {
        .dtype = VOXELD_FLOAT64, .data = places, .n = 1, .n_elements = 5};
    struct voxeld_scene_operation op = {.shape = VOXELD_SHAPE_POINTS};
    struct voxeld_scene_edit_request edit = {.operations = &op, .n_operations = 1};
    struct voxeld_scene_create_request create = {.n_palette = 1};
    struct voxeld_scene_found *f;
    struct voxeld_error error;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    op.in.points.points = nowhere;
    CHECK_INT(voxeld_scene_edit(pair.client, &edit, NULL, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "operations[0].points.points");
    op.shape = (enum voxeld_scene_shape)77;
    CHECK_INT(voxeld_scene_edit(pair.client, &edit, NULL, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "operations[0].shape");
    edit.operations = NULL;
    CHECK_INT(voxeld_scene_edit(pair.client, &edit, NULL, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "operations");
    CHECK_INT(voxeld_scene_create(pair.client, &create, NULL, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "spec.palette");
    CHECK_INT(voxeld_scene_values(pair.client, NULL, "", &nowhere, &f, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "points");
    CHECK_INT(voxeld_scene_nearest(pair.client, NULL, "", NULL, 1, &f, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK(f == NULL);
    CHECK_INT(voxeld_scene_overlap(pair.client, NULL, "", &wide, false, &f, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "shapes");
    CHECK_INT(atomic_load(&pair.peer.n_voxelize), 0);
    pair_stop(&pair);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_scene_calls_hand_out_what_the_server_says),
    VXD_TEST(test_edit_sends_every_shape_and_says_what_it_did),
    VXD_TEST(test_operations_grow_and_stay_as_they_are),
    VXD_TEST(test_integrate_sends_a_cloud_with_its_pose),
    VXD_TEST(test_integrate_async_has_many_scans_under_way_on_one_connection),
    VXD_TEST(test_integrate_sends_a_network_and_what_its_labels_become),
    VXD_TEST(test_queries_hand_out_checked_arrays),
    VXD_TEST(test_export_hands_out_cells_boxes_and_bytes),
    VXD_TEST(test_exported_file_is_put_together_of_parts_of_one_version),
    VXD_TEST(test_flawed_scene_answers_are_internal),
    VXD_TEST(test_impossible_scene_requests_are_refused_unsent),
};

VXD_TEST_MAIN(tests)
