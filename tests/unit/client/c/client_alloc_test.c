// SPDX-License-Identifier: Apache-2.0
/* Every allocation of readers and library fails once: the call reports it, nothing
 * leaks (AddressSanitizer watches), and the next attempt works. The linker puts the
 * functions below in front of malloc, calloc, realloc and strdup of our own code. */
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "client/files/files.h"
#include "client/c/include/voxeld.h"
#include "tests/support/test.h"
#include "tests/support/client/peer.h"

enum {
    MAX_ALLOCATIONS = 200,
    PATIENT_MS = 30000 /* no call may run out of time, however busy the machine */
};

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t n);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t n);
char *__wrap_strdup(const char *s);

/* Counts down to the allocation of this thread that fails; 0 = none. The peer's
 * threads have counters of their own. */
static _Thread_local int fail_in;
static _Thread_local bool has_failed;

static bool fails(void)
{
    if (fail_in > 0 && --fail_in == 0) {
        has_failed = true;
        return true;
    }
    return false;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *block, size_t n)
{
    return fails() ? NULL : __real_realloc(block, n);
}

char *__wrap_strdup(const char *s)
{
    return fails() ? NULL : __real_strdup(s);
}

/* Runs an attempt with its k-th allocation failing, for each k, until none fails. */
static void check_each(bool (*attempt)(void *context, enum voxeld_status *status),
                       void *context)
{
    for (int k = 1; k < MAX_ALLOCATIONS; k++) {
        enum voxeld_status status = VOXELD_OK;
        bool worked;

        has_failed = false;
        fail_in = k;
        worked = attempt(context, &status);
        fail_in = 0;
        if (!has_failed) {
            CHECK(worked);
            CHECK(k > 1);
            return;
        }
        CHECK(worked || status == VOXELD_RESOURCE_EXHAUSTED);
    }
    CHECK(false);
}

static bool read_file(void *context, enum voxeld_status *status)
{
    const char *const *file = context;
    struct voxeld_cloud *cloud = NULL;
    struct voxeld_error error = {0};

    *status = voxeld_cloud_read_file(file[0], file[1], &cloud, &error);
    CHECK((*status == VOXELD_OK) == (cloud != NULL) && error.code == *status);
    voxeld_cloud_free(cloud);
    return *status == VOXELD_OK;
}

#define FILES VOXELD_SOURCE_DIR "/tests/data/files/"

static void test_cloud_file_without_memory_is_resource_exhausted(void)
{
    static const char *const files[][2] = {
        {FILES "plain_f4.npy", NULL}, {FILES "fortran_f4.npy", NULL},
        {FILES "deflated.npz", NULL}, {FILES "fortran.npz", NULL},
        {FILES "ascii.pcd", NULL},    {FILES "compressed.pcd", NULL},
        {FILES "big.ply", NULL},      {FILES "ascii.ply", NULL},
        {FILES "kitti.bin", "kitti"}, {FILES "v4_f10.las", NULL}};

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        check_each(read_file, (void *)(uintptr_t)files[i]);
    }
}

struct write_job {
    const char *format;
    struct vxd_cloud_file file;
};

static bool write_file(void *context, enum voxeld_status *status)
{
    const struct write_job *job = context;
    FILE *stream = fopen("/dev/null", "wbe");
    struct vxd_write_result result;
    struct vxd_err err = {0};

    *status = VOXELD_INTERNAL;
    if (stream == NULL) {
        return false;
    }
    *status = (enum voxeld_status)vxd_cloud_file_write(stream, job->format, &job->file,
                                                       &result, &err);
    CHECK(*status == VOXELD_OK || result.n_points == 0);
    (void)fclose(stream);
    return *status == VOXELD_OK;
}

static void test_writers_without_memory_are_resource_exhausted(void)
{
    static const uint8_t records[48];
    struct write_job job = {.file = {.fields = {{"x", 0, VXD_FLOAT32, 1, 0},
                                                {"y", 4, VXD_FLOAT32, 1, 0},
                                                {"z", 8, VXD_FLOAT32, 1, 0}},
                                     .n_fields = 3,
                                     .point_step = 12,
                                     .n_points = 4,
                                     .data = records}};

    for (size_t i = 0; (job.format = vxd_cloud_file_write_format(i)) != NULL; i++) {
        check_each(write_file, &job);
    }
}

static bool connect_once(void *context, enum voxeld_status *status)
{
    struct peer *peer = context;
    struct voxeld_options options = {
        .url = peer->url, .timeout_ms = PATIENT_MS, .wait_ms = PATIENT_MS};
    struct voxeld_client *client = NULL;

    *status = voxeld_connect(&options, &client, NULL);
    voxeld_close(client);
    return *status == VOXELD_OK;
}

static void keep(void *context, struct voxeld_voxels *voxels,
                 const struct voxeld_error *error)
{
    *(enum voxeld_status *)context = error != NULL ? error->code : VOXELD_OK;
    voxeld_voxels_free(voxels);
}

static const float points[12];
static const struct voxeld_field fields[3] = {
    {.name = "x", .offset = 0, .dtype = VOXELD_FLOAT32},
    {.name = "y", .offset = 4, .dtype = VOXELD_FLOAT32},
    {.name = "z", .offset = 8, .dtype = VOXELD_FLOAT32}};
static const struct voxeld_sweep sweep = {
    .data = points, .n_points = 1, .T_cloud_sweep = {.translation_m = {1, 0, 0}}};
static const struct voxeld_cloud cloud = {.fields = fields,
                                          .n_fields = 3,
                                          .point_step = 12,
                                          .data = points,
                                          .n_points = 4,
                                          .sweeps = &sweep,
                                          .n_sweeps = 1};

static bool voxelize_once(void *context, enum voxeld_status *status)
{
    struct voxeld_voxelize_request request = {
        .clouds = &cloud, .n_clouds = 1, .size_m = {1, 1, 1}, .has_range = true};
    struct voxeld_voxels *voxels = NULL;

    *status = voxeld_voxelize(context, &request, &voxels, NULL);
    CHECK((*status == VOXELD_OK) == (voxels != NULL));
    voxeld_voxels_free(voxels);
    return *status == VOXELD_OK;
}

static bool voxelize_async_once(void *context, enum voxeld_status *status)
{
    struct voxeld_voxelize_request request = {
        .clouds = &cloud, .n_clouds = 1, .size_m = {1, 1, 1}};

    *status = voxeld_voxelize_async(context, &request, keep, status, NULL);
    if (*status == VOXELD_OK) {
        CHECK_INT(voxeld_dispatch(context, -1), 1);
    }
    return *status == VOXELD_OK;
}

/* Arrays that are left in the reply, or copied when it does not align them. */
static bool voxelize_many_once(void *context, enum voxeld_status *status)
{
    static const float many[3 * 30000];
    struct voxeld_cloud large = cloud;
    struct voxeld_voxelize_request request = {
        .clouds = &large, .n_clouds = 1, .size_m = {1, 1, 1}};
    struct voxeld_voxels *voxels = NULL;

    large.data = many;
    large.n_points = 30000;
    *status = voxeld_voxelize(context, &request, &voxels, NULL);
    CHECK((*status == VOXELD_OK) == (voxels != NULL));
    voxeld_voxels_free(voxels);
    return *status == VOXELD_OK;
}

static bool ask_once(void *context, enum voxeld_status *status)
{
    struct voxeld_server_info *info = NULL;
    struct voxeld_server_status *server = NULL;

    *status = voxeld_get_server_info(context, NULL, &info, NULL);
    voxeld_server_info_free(info);
    if (*status == VOXELD_OK) {
        *status = voxeld_get_status(context, NULL, &server, NULL);
        voxeld_server_status_free(server);
    }
    return *status == VOXELD_OK;
}

static const int32_t keys[6];
static const struct voxeld_array key_array = {
    .dtype = VOXELD_INT32, .data = keys, .n = 2, .n_elements = 3};
static const struct voxeld_array rows = {"v", VOXELD_FLOAT32, keys, 2, 2};

static bool change_map_once(void *context, enum voxeld_status *status)
{
    static const struct voxeld_map_array arrays[] = {{"v", VOXELD_FLOAT32, 2}};
    struct voxeld_map_create_request create = {
        .map = "seen", .arrays = arrays, .n_arrays = 1};
    struct voxeld_map_update_request update = {
        .map = "seen", .keys = key_array, .values = &rows, .n_values = 1};
    struct voxeld_map_insert_request insert = {
        .map = "seen", .keys = key_array, .values = &rows, .n_values = 1};
    struct voxeld_map_result *result = NULL;
    struct voxeld_maps *maps = NULL;

    *status = voxeld_map_create(context, &create, &maps, NULL);
    CHECK((*status == VOXELD_OK) == (maps != NULL));
    voxeld_maps_free(maps);
    if (*status == VOXELD_OK) {
        *status = voxeld_map_insert(context, &insert, &result, NULL);
        CHECK((*status == VOXELD_OK) == (result != NULL));
        voxeld_map_result_free(result);
    }
    if (*status == VOXELD_OK) {
        *status = voxeld_map_update(context, &update, &result, NULL);
        voxeld_map_result_free(result);
    }
    return *status == VOXELD_OK;
}

/* The file belongs to this process alone, because the builds' tests may run side by
 * side. */
static const char *name_file(char *path, size_t n_bytes)
{
    (void)snprintf(path, n_bytes, "/tmp/voxeld-alloc-%ld.ply", (long)getpid());
    return path;
}

static bool read_map_once(void *context, enum voxeld_status *status)
{
    static const char *const names[] = {"v"};
    struct voxeld_map_find_request find = {.map = "seen",
                                           .keys = key_array,
                                           .arrays = names,
                                           .n_arrays = 1,
                                           .neighbours = 6,
                                           .return_keys = true};
    struct voxeld_map_export_request export = {.map = "seen"};
    struct voxeld_map_result *result = NULL;
    struct voxeld_maps *maps = NULL;

    *status = voxeld_map_find(context, &find, &result, NULL);
    CHECK((*status == VOXELD_OK) == (result != NULL));
    voxeld_map_result_free(result);
    if (*status == VOXELD_OK) {
        *status = voxeld_map_export(context, &export, &result, NULL);
        voxeld_map_result_free(result);
    }
    if (*status == VOXELD_OK) {
        char path[64];

        *status = voxeld_map_export_file(context, &export, name_file(path, sizeof path),
                                         NULL, NULL);
        (void)unlink(path);
    }
    if (*status == VOXELD_OK) {
        *status = voxeld_map_list(context, NULL, &maps, NULL);
        voxeld_maps_free(maps);
    }
    return *status == VOXELD_OK;
}

/* Tests a list that grows, and the calls that take its operations. */
static bool change_scene_once(void *context, enum voxeld_status *status)
{
    static const struct voxeld_scene_material palette[] = {{"a", 1}};
    struct voxeld_scene_create_request create = {
        .scene = "yard", .palette = palette, .n_palette = 1};
    static const struct voxeld_scene_label labels[] = {{.label = 1, .material = 2}};
    struct voxeld_scene_integrate_request integrate = {.scene = "yard",
                                                       .cloud = &cloud,
                                                       .network = "unet",
                                                       .labels = labels,
                                                       .n_labels = 1};
    struct voxeld_scene_edit_request edit = {.scene = "yard"};
    struct voxeld_scene_operations list = {0};
    struct voxeld_scenes *scenes = NULL;

    *status = voxeld_scene_create(context, &create, &scenes, NULL);
    CHECK((*status == VOXELD_OK) == (scenes != NULL));
    voxeld_scenes_free(scenes);
    for (size_t i = 0; i < 40 && *status == VOXELD_OK; i++) {
        struct voxeld_scene_operation *op = voxeld_scene_add(&list, VOXELD_SHAPE_POINTS);

        if (op == NULL) {
            *status = VOXELD_RESOURCE_EXHAUSTED;
        } else {
            op->in.points.points = key_array;
        }
    }
    if (*status == VOXELD_OK) {
        edit.operations = list.operations;
        edit.n_operations = list.n;
        *status = voxeld_scene_edit(context, &edit, NULL, NULL);
    }
    voxeld_scene_clear(&list);
    if (*status == VOXELD_OK) {
        *status = voxeld_scene_integrate(context, &integrate, NULL, NULL);
    }
    return *status == VOXELD_OK;
}

static bool read_scene_once(void *context, enum voxeld_status *status)
{
    static const double place[3];
    const struct voxeld_array array = {
        .dtype = VOXELD_FLOAT64, .data = place, .n = 1, .n_elements = 3};
    struct voxeld_scene_export_request export = {.scene = "yard"};
    struct voxeld_scene_found *found = NULL;
    struct voxeld_scene_cells *cells = NULL;

    *status =
        voxeld_scene_cast_rays(context, NULL, "yard", &array, &array, 0, &found, NULL);
    CHECK((*status == VOXELD_OK) == (found != NULL));
    voxeld_scene_found_free(found);
    if (*status == VOXELD_OK) {
        *status = voxeld_scene_export(context, &export, &cells, NULL);
        CHECK((*status == VOXELD_OK) == (cells != NULL));
        voxeld_scene_cells_free(cells);
    }
    if (*status == VOXELD_OK) {
        char path[64];
        char part[80];

        *status = voxeld_scene_export_file(context, &export, name_file(path, sizeof path),
                                           NULL, NULL);
        (void)snprintf(part, sizeof part, "%s.part", path);
        CHECK(access(part, F_OK) != 0);
        (void)unlink(path);
    }
    return *status == VOXELD_OK;
}

static bool version_once(void *context, enum voxeld_status *status)
{
    struct voxeld_scene_undo_request undo = {.scene = "yard"};
    struct voxeld_scene_branch_request branch = {
        .scene = "yard", .new_scene = "copy", .at = {.snapshot = "monday"}};
    struct voxeld_scene_diff_request diff = {.scene = "yard", .from = {.version = 3}};
    struct voxeld_scene_log *log = NULL;
    struct voxeld_scene_diff *difference = NULL;
    struct voxeld_scenes *scenes = NULL;
    struct voxeld_backup *backup = NULL;

    *status = voxeld_scene_get_log(context, NULL, "yard", 0, 0, &log, NULL);
    CHECK((*status == VOXELD_OK) == (log != NULL));
    voxeld_scene_log_free(log);
    if (*status == VOXELD_OK) {
        *status = voxeld_scene_undo(context, &undo, NULL, NULL);
    }
    if (*status == VOXELD_OK) {
        *status = voxeld_scene_branch(context, &branch, &scenes, NULL, NULL);
        CHECK((*status == VOXELD_OK) == (scenes != NULL));
        voxeld_scenes_free(scenes);
    }
    if (*status == VOXELD_OK) {
        *status = voxeld_scene_get_diff(context, &diff, &difference, NULL);
        CHECK((*status == VOXELD_OK) == (difference != NULL));
        voxeld_scene_diff_free(difference);
    }
    if (*status == VOXELD_OK) {
        *status = voxeld_scene_get(context, NULL, "yard@monday", &scenes, NULL);
        voxeld_scenes_free(scenes);
    }
    if (*status == VOXELD_OK) {
        *status = voxeld_make_backup(context, NULL, "monday", &backup, NULL);
        CHECK((*status == VOXELD_OK) == (backup != NULL));
        voxeld_backup_free(backup);
    }
    return *status == VOXELD_OK;
}

static bool parse_text_once(void *context, enum voxeld_status *status)
{
    struct vxd_array_file file;
    struct vxd_err err = {0};

    (void)context;
    *status = (enum voxeld_status)vxd_text_parse_array((const uint8_t *)"1 2\n3 4\n", 8,
                                                       VXD_INT32, &file, &err);
    vxd_array_file_clear(&file);
    return *status == VOXELD_OK;
}

static bool write_npz_once(void *context, enum voxeld_status *status)
{
    const struct vxd_write_array arrays[] = {{"a", VXD_INT32, {6}, 1, keys},
                                             {"b", VXD_INT32, {2, 3}, 2, keys}};
    FILE *stream = fopen("/dev/null", "wbe");
    struct vxd_err err = {0};

    (void)context;
    *status = VOXELD_INTERNAL;
    if (stream != NULL) {
        *status = (enum voxeld_status)vxd_npz_write(stream, arrays, 2, &err);
        (void)fclose(stream);
    }
    return *status == VOXELD_OK;
}

static void test_arrays_without_memory_are_resource_exhausted(void)
{
    check_each(parse_text_once, NULL);
    check_each(write_npz_once, NULL);
}

static void test_calls_without_memory_are_resource_exhausted(void)
{
    struct peer peer;
    struct voxeld_options options = {
        .timeout_ms = PATIENT_MS, .wait_ms = PATIENT_MS, .max_in_flight = 2};
    struct voxeld_client *client = NULL;

    REQUIRE(peer_start(&peer, NULL) == 0);
    options.url = peer.url;
    check_each(connect_once, &peer);
    REQUIRE(voxeld_connect(&options, &client, NULL) == VOXELD_OK);
    check_each(voxelize_once, client);
    check_each(voxelize_async_once, client);
    check_each(voxelize_many_once, client);
    atomic_store(&peer.aligns, 1);
    check_each(voxelize_many_once, client);
    check_each(ask_once, client);
    check_each(change_map_once, client);
    check_each(read_map_once, client);
    check_each(change_scene_once, client);
    check_each(read_scene_once, client);
    check_each(version_once, client);
    voxeld_close(client);
    peer_stop(&peer);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_cloud_file_without_memory_is_resource_exhausted),
    VXD_TEST(test_writers_without_memory_are_resource_exhausted),
    VXD_TEST(test_arrays_without_memory_are_resource_exhausted),
    VXD_TEST(test_calls_without_memory_are_resource_exhausted),
};

VXD_TEST_MAIN(tests)
