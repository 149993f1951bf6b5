// SPDX-License-Identifier: Apache-2.0
#include "tests/support/svdag/svdag_versions.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_OPS = 4
};

static void require(bool is_right, const char *what)
{
    if (!is_right) {
        (void)fprintf(stderr, "versions: %s\n", what);
        exit(EXIT_FAILURE);
    }
}

struct vxd_svdag *gpu_svdag_versions_store(struct gpu_env *env,
                                           const struct vxd_svdag_format *format,
                                           size_t max_bytes)
{
    const struct vxd_svdag_spec spec = {.format = *format,
                                        .store = gpu_svdag_store(format),
                                        .max_bytes = max_bytes,
                                        .table_items = (uint64_t)1 << 14};
    struct vxd_svdag *svdag = NULL;
    struct vxd_err err = {0};

    require(vxd_svdag_create(env->queue, &spec, &svdag, &err) == VXD_OK, err.message);
    return svdag;
}

void gpu_svdag_versions_open(struct gpu_env *env, const struct vxd_svdag_format *format,
                             struct gpu_svdag_versions *out)
{
    out->env = env;
    out->svdag = gpu_svdag_versions_store(env, format, 0);
    gpu_env_create(&out->cpu, VXD_BACKEND_CPU, 1, 0, 0);
    out->reference = gpu_svdag_versions_store(&out->cpu, format, 0);
    for (size_t i = 0; i < GPU_SVDAG_MAX_VERSIONS; i++) {
        gpu_svdag_grid_make(&out->grids[i], format);
    }
    out->roots[0] = VXD_SVDAG_EMPTY;
    out->n = 1;
}

void gpu_svdag_versions_close(struct gpu_svdag_versions *versions)
{
    for (size_t i = 0; i < GPU_SVDAG_MAX_VERSIONS; i++) {
        gpu_svdag_grid_free(&versions->grids[i]);
    }
    vxd_svdag_destroy(versions->cpu.queue, versions->reference);
    gpu_env_destroy(&versions->cpu);
    vxd_svdag_destroy(versions->env->queue, versions->svdag);
}

static int64_t between(uint64_t *seed, int64_t low, int64_t high)
{
    return low + (int64_t)(gpu_random(seed) % (uint64_t)(high - low + 1));
}

struct vxd_svdag_op gpu_svdag_random_op(const struct vxd_svdag_format *format,
                                        uint64_t *seed)
{
    const int64_t side = (int64_t)1 << format->depth;
    const uint32_t n_materials = vxd_svdag_n_materials(format);
    const int64_t size = (int64_t)1 << gpu_random(seed) % (uint64_t)(format->depth + 1);
    const int64_t step = gpu_random(seed) % 2 == 0 ? 1 : size;
    struct vxd_svdag_op op = {.action = (enum vxd_svdag_action)(gpu_random(seed) % 7),
                              .value = (uint32_t)(gpu_random(seed) % n_materials),
                              .from = (uint32_t)(gpu_random(seed) % n_materials)};

    /* Later edits need something to work on, so most operations are fills. */
    if (op.action > VXD_SVDAG_REPLACE ||
        (op.action == VXD_SVDAG_SET_FREE && !format->tracks_free)) {
        op.action = VXD_SVDAG_FILL;
    }
    op.shape.kind = gpu_random(seed) % 3 == 0 ? VXD_SVDAG_BALL : VXD_SVDAG_BOX;
    op.shape.r = size * VXD_SVDAG_UNIT / 2;
    for (int axis = 0; axis < 3; axis++) {
        int64_t low = between(seed, -1, side / step) * step;

        op.shape.low[axis] = low * VXD_SVDAG_UNIT;
        op.shape.high[axis] =
            (low + between(seed, 1, size / step) * step) * VXD_SVDAG_UNIT;
        op.shape.a[axis] = between(seed, 0, side * VXD_SVDAG_UNIT);
    }
    return op;
}

static size_t n_voxels(const struct gpu_svdag_grid *grid)
{
    return (size_t)(grid->side * grid->side * grid->side);
}

void gpu_svdag_grid_undo(const struct gpu_svdag_grid *head,
                         const struct gpu_svdag_grid *before,
                         const struct gpu_svdag_grid *after, struct gpu_svdag_grid *out)
{
    for (size_t i = 0; i < n_voxels(head); i++) {
        bool is_taken =
            before->voxels[i] != after->voxels[i] && head->voxels[i] == after->voxels[i];

        out->voxels[i] = is_taken ? before->voxels[i] : head->voxels[i];
    }
}

/* Checks that a root holds the voxels of a grid in canonical form. */
static void check_root(struct gpu_svdag_versions *versions, uint32_t root,
                       const struct gpu_svdag_grid *grid)
{
    struct vxd_svdag_summary summaries[2];
    struct vxd_err err = {0};

    if (!gpu_is_cuda(versions->env)) {
        require(gpu_svdag_grid_put(grid, versions->svdag) == root, "another root");
    }
    require(vxd_svdag_verify(versions->env->queue, versions->svdag, root, &summaries[0],
                             &err) == VXD_OK,
            err.message);
    require(vxd_svdag_verify(versions->cpu.queue, versions->reference,
                             gpu_svdag_grid_put(grid, versions->reference), &summaries[1],
                             &err) == VXD_OK,
            err.message);
    require(memcmp(&summaries[0], &summaries[1], sizeof summaries[0]) == 0,
            "another summary");
}

void gpu_svdag_versions_edit(struct gpu_svdag_versions *versions, uint64_t *seed)
{
    const struct gpu_svdag_grid *from = &versions->grids[versions->n - 1];
    struct gpu_svdag_grid *to = &versions->grids[versions->n];
    struct vxd_svdag_op ops[MAX_OPS];
    struct vxd_svdag_edit_result result = {0};
    struct vxd_err err = {0};
    size_t n = 1 + gpu_random(seed) % MAX_OPS;

    for (size_t i = 0; i < n; i++) {
        ops[i] = gpu_svdag_random_op(&from->format, seed);
    }
    gpu_svdag_grid_copy(to, from);
    gpu_svdag_grid_edit(to, ops, n);
    require(gpu_svdag_edit(versions->env, versions->svdag,
                           versions->roots[versions->n - 1], ops, n, &result,
                           &err) == VXD_OK,
            err.message);
    versions->roots[versions->n++] = result.root;
}

void gpu_svdag_versions_undo(struct gpu_svdag_versions *versions, size_t head,
                             size_t before, size_t after)
{
    struct gpu_svdag_grid *to = &versions->grids[versions->n];
    struct vxd_svdag_edit_result counts = {0};
    struct vxd_svdag_edit_result result = {0};
    struct vxd_err err = {0};

    gpu_svdag_grid_undo(&versions->grids[head], &versions->grids[before],
                        &versions->grids[after], to);
    gpu_svdag_grid_change(&versions->grids[head], to, &counts);
    require(vxd_svdag_undo_wait(versions->env->queue, versions->svdag,
                                versions->roots[head], versions->roots[before],
                                versions->roots[after], &result, &err) == VXD_OK,
            err.message);
    require(!result.needs_capacity, "the capacity does not suffice");
    require(result.n_added == counts.n_added && result.n_removed == counts.n_removed &&
                result.n_changed == counts.n_changed && result.n_freed == counts.n_freed,
            "other counts");
    check_root(versions, result.root, to);
    versions->roots[versions->n++] = result.root;
}
