// SPDX-License-Identifier: Apache-2.0
/* Real consecutive scans, integrated one after the other. The scene equals, voxel for
 * voxel, what a dense traversal of all rays makes of a plain grid, and objects that have
 * left are gone from the scene. */
#include "tests/support/test.h"

#include "tests/support/svdag/svdag_grid.h"
#include "tests/support/svdag/svdag_rays.h"
#include "tests/support/svdag/svdag_run.h"

enum {
    DEPTH = 8,
    N_SCANS = 2
};

static const char *const names[N_SCANS] = {"lidar/kitti_seq_000000.bin",
                                           "lidar/kitti_seq_000001.bin"};

/* Points of a scan in half metres, without those whose results depend on rounding; NULL:
 * no data. */
static float *read_scan(const char *name, struct vxd_svdag_scan *scan)
{
    size_t n_bytes;
    float *records = gpu_read_data(name, &n_bytes);

    if (records == NULL) {
        return NULL;
    }
    scan->n = 0;
    for (size_t i = 0; i < n_bytes / 16; i++) { /* in place: keeps 3 of every 4 floats */
        float point[3] = {2 * records[4 * i], 2 * records[4 * i + 1],
                          2 * records[4 * i + 2]};

        if (gpu_svdag_point_is_clear(scan, point)) {
            memcpy(records + 3 * scan->n++, point, sizeof point);
        }
    }
    scan->points = records;
    return records;
}

/* Applies a scan to a grid; counts changes as edits do. */
static void integrate_grid(const struct gpu_svdag_scan_grid *seen, bool tracks_free,
                           struct gpu_svdag_grid *grid,
                           struct vxd_svdag_edit_result *want)
{
    size_t n = (size_t)(grid->side * grid->side * grid->side);
    struct gpu_svdag_grid before;

    gpu_svdag_grid_make(&before, &grid->format);
    gpu_svdag_grid_copy(&before, grid);
    for (size_t i = 0; i < n; i++) {
        if (seen->hit[i] != 0) {
            grid->voxels[i] = 0;
        } else if (seen->passed[i] != 0) {
            grid->voxels[i] = tracks_free ? GPU_VOXEL_FREE : GPU_VOXEL_UNSET;
        }
    }
    gpu_svdag_grid_change(&before, grid, want);
    gpu_svdag_grid_free(&before);
}

static void integrate(struct gpu_env *env, struct vxd_svdag *svdag,
                      const struct vxd_svdag_scan *scan, uint32_t root,
                      struct vxd_svdag_edit_result *out)
{
    const struct vxd_svdag_format *format = &vxd_svdag_get_spec(svdag)->format;
    struct vxd_svdag_op ops[2] = {
        {.shape = {.kind = VXD_SVDAG_VOXELS},
         .action = format->tracks_free ? VXD_SVDAG_SET_FREE : VXD_SVDAG_ERASE},
        {.shape = {.kind = VXD_SVDAG_VOXELS}, .action = VXD_SVDAG_FILL}};
    struct vxd_svdag_scan_result result;
    struct vxd_err err = {0};

    REQUIRE(gpu_svdag_scan(env, format, scan, &result, &err) == VXD_OK);
    ops[0].shape.voxels = result.passed.voxels;
    ops[1].shape.voxels = result.hits.voxels;
    CHECK_INT(gpu_svdag_edit(env, svdag, root, ops, 2, out, &err), VXD_OK);
    gpu_svdag_list_free(env, &result.hits);
    gpu_svdag_list_free(env, &result.passed);
}

static void compare(struct gpu_env *env, const struct vxd_svdag *svdag, uint32_t root,
                    const struct gpu_svdag_grid *grid)
{
    struct vxd_svdag_spec spec = {.format = grid->format};
    struct vxd_svdag_summary got;
    struct vxd_svdag_summary want;
    struct vxd_svdag *other;
    struct gpu_env cpu;

    gpu_env_create(&cpu, VXD_BACKEND_CPU, 1, 0, 0);
    REQUIRE(vxd_svdag_create(cpu.queue, &spec, &other, NULL) == VXD_OK);
    CHECK_INT(vxd_svdag_verify(env->queue, svdag, root, &got, NULL), VXD_OK);
    CHECK_INT(
        vxd_svdag_verify(cpu.queue, other, gpu_svdag_grid_put(grid, other), &want, NULL),
        VXD_OK);
    CHECK(memcmp(&got, &want, sizeof got) == 0);
    vxd_svdag_destroy(cpu.queue, other);
    gpu_env_destroy(&cpu);
}

static void drive(struct gpu_env *env, const struct gpu_svdag_scan_grid seen[N_SCANS],
                  const struct vxd_svdag_scan scans[N_SCANS],
                  const struct vxd_svdag_format *format)
{
    struct vxd_svdag_spec spec = {.format = *format};
    uint32_t root = VXD_SVDAG_EMPTY;
    struct gpu_svdag_grid grid;
    struct vxd_svdag *svdag;
    size_t n_gone = 0;

    gpu_svdag_grid_make(&grid, format);
    REQUIRE(vxd_svdag_create(env->queue, &spec, &svdag, NULL) == VXD_OK);
    for (int k = 0; k < N_SCANS; k++) {
        struct vxd_svdag_edit_result want = {0};
        struct vxd_svdag_edit_result got = {0};

        integrate_grid(&seen[k], format->tracks_free, &grid, &want);
        integrate(env, svdag, &scans[k], root, &got);
        CHECK_INT(got.n_added, want.n_added);
        CHECK_INT(got.n_removed, want.n_removed);
        CHECK_INT(got.n_freed, want.n_freed);
        root = got.root;
        compare(env, svdag, root, &grid);
    }
    /* What the first scan hit and the second one sees through is nowhere in the scene any
     * more. */
    for (size_t i = 0; i < (size_t)1 << (3 * DEPTH); i++) {
        n_gone += seen[0].hit[i] != 0 && seen[1].passed[i] != 0;
        CHECK(!(seen[1].passed[i] != 0 && grid.voxels[i] >= 0));
    }
    CHECK(n_gone > 500);
    vxd_svdag_destroy(env->queue, svdag);
    gpu_svdag_grid_free(&grid);
}

static void drives(struct gpu_env *env)
{
    static const struct vxd_svdag_format formats[2] = {{DEPTH, 0, true},
                                                       {DEPTH, 4, false}};
    struct gpu_svdag_scan_grid seen[N_SCANS];
    struct vxd_svdag_scan scans[N_SCANS];
    float *points[N_SCANS];

    for (int k = 0; k < N_SCANS; k++) {
        scans[k] = (struct vxd_svdag_scan){.base = {128, 128, 128},
                                           .origin = {0.03, -0.07, 0.01},
                                           .max_range = 61.7,
                                           .carve = true};
        points[k] = read_scan(names[k], &scans[k]);
        REQUIRE(points[k] != NULL);
        gpu_svdag_scan_grid_make(&seen[k], DEPTH);
        gpu_svdag_scan_grid_run(&seen[k], &scans[k]);
    }
    for (int f = 0; f < 2; f++) {
        drive(env, seen, scans, &formats[f]);
    }
    for (int k = 0; k < N_SCANS; k++) {
        gpu_svdag_scan_grid_free(&seen[k]);
        free(points[k]);
    }
}

static void test_scans_of_a_real_drive_clear_what_is_gone(void)
{
    size_t n_bytes;
    void *records = gpu_read_data(names[1], &n_bytes);

    if (records == NULL) {
        SKIP("no data directory");
    }
    free(records);
    gpu_each_backend(drives);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_scans_of_a_real_drive_clear_what_is_gone),
};

VXD_TEST_MAIN(tests)
