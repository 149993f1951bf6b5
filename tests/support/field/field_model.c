// SPDX-License-Identifier: Apache-2.0
#include "tests/support/field/field_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t code_of(const struct vxd_svdag_format *format, int kind, uint64_t *state,
                        int x, int y, int z)
{
    uint64_t r = gpu_random(state) % 1000;
    uint32_t clear = format->tracks_free && z % 16 < 12 ? (uint32_t)GPU_SVDAG_FREE : 0;
    bool is_wall = x % 11 == 3 || (y % 17 == 5 && x % 11 != 7) || z % 23 < 2;

    switch (kind) {
    case 0:
        return clear;
    case 1:
        return GPU_SVDAG_MATERIAL;
    case 2:
        return x == 5 && y == 6 && z == 7 ? GPU_SVDAG_MATERIAL : clear;
    case 3:
        return r < 8 ? GPU_SVDAG_MATERIAL : clear;
    case 4:
        return is_wall && r < 990 ? GPU_SVDAG_MATERIAL : r < 5 ? 0 : clear;
    default:
        return r < 980 ? GPU_SVDAG_MATERIAL : clear;
    }
}

uint32_t *field_model_codes(const struct vxd_svdag_format *format, int kind,
                            uint64_t seed)
{
    int side = 1 << format->depth;
    uint32_t *codes =
        gpu_alloc((size_t)side * (size_t)side * (size_t)side * sizeof *codes);
    size_t i = 0;

    for (int x = 0; x < side; x++) {
        for (int y = 0; y < side; y++) {
            for (int z = 0; z < side; z++) {
                codes[i++] = code_of(format, kind, &seed, x, y, z);
            }
        }
    }
    return codes;
}

size_t field_model_index(const struct field_model *model, int x, int y, int z)
{
    return ((size_t)(x - model->spec.low[0]) * (size_t)model->size[1] +
            (size_t)(y - model->spec.low[1])) *
               (size_t)model->size[2] +
           (size_t)(z - model->spec.low[2]);
}

static void classify(const struct vxd_svdag_format *format, const uint32_t *codes,
                     struct field_model *model, int x, int y, int z)
{
    int side = 1 << format->depth;
    bool is_in = x >= 0 && y >= 0 && z >= 0 && x < side && y < side && z < side;
    uint32_t code = is_in ? codes[(x * side + y) * side + z] : 0;
    bool is_unknown = format->tracks_free && code == 0;
    size_t i = field_model_index(model, x, y, z);

    model->obstacles[i] =
        code >= GPU_SVDAG_MATERIAL ||
        (is_unknown && model->spec.unknown == VXD_FIELD_UNKNOWN_OCCUPIED);
    model->unknown[i] = is_unknown && model->spec.unknown == VXD_FIELD_UNKNOWN_IGNORED;
}

/* Visits candidates in ascending order of x, y, z, so that the first of equal ones stays. */
static void find_nearest(struct field_model *model, int x, int y, int z)
{
    const struct vxd_field_spec *spec = &model->spec;
    size_t i = field_model_index(model, x, y, z);
    int reach = spec->max_distance;
    int from[3] = {x - reach, y - reach, z - reach};
    int to[3] = {x + reach, y + reach, z + reach};
    int best = reach * reach + 1;

    for (int axis = 0; axis < 3; axis++) {
        from[axis] = from[axis] > spec->low[axis] ? from[axis] : spec->low[axis];
        to[axis] = to[axis] < spec->high[axis] - 1 ? to[axis] : spec->high[axis] - 1;
        model->nearest[3 * i + (size_t)axis] = INT32_MIN;
    }
    for (int u = from[0]; u <= to[0]; u++) {
        for (int v = from[1]; v <= to[1]; v++) {
            size_t row = field_model_index(model, u, v, spec->low[2]);
            int plane = (u - x) * (u - x) + (v - y) * (v - y);

            for (int w = from[2]; plane < best && w <= to[2]; w++) {
                int square = plane + (w - z) * (w - z);

                if (square < best && model->obstacles[row + (size_t)(w - spec->low[2])] !=
                                         model->obstacles[i]) {
                    best = square;
                    model->nearest[3 * i] = u;
                    model->nearest[3 * i + 1] = v;
                    model->nearest[3 * i + 2] = w;
                }
            }
        }
    }
    model->squares[i] = best > reach * reach ? 0 : model->obstacles[i] ? -best : best;
}

void field_model_make(const struct vxd_svdag_format *format, const uint32_t *codes,
                      const struct vxd_field_spec *spec, struct field_model *out)
{
    out->spec = *spec;
    out->n = 1;
    for (int axis = 0; axis < 3; axis++) {
        out->size[axis] = spec->high[axis] - spec->low[axis];
        out->n *= (size_t)out->size[axis];
    }
    out->obstacles = gpu_alloc(out->n);
    out->unknown = gpu_alloc(out->n);
    out->squares = gpu_alloc(out->n * sizeof *out->squares);
    out->nearest = gpu_alloc(3 * out->n * sizeof *out->nearest);
    for (int x = spec->low[0]; x < spec->high[0]; x++) {
        for (int y = spec->low[1]; y < spec->high[1]; y++) {
            for (int z = spec->low[2]; z < spec->high[2]; z++) {
                classify(format, codes, out, x, y, z);
            }
        }
    }
    for (int x = spec->low[0]; x < spec->high[0]; x++) {
        for (int y = spec->low[1]; y < spec->high[1]; y++) {
            for (int z = spec->low[2]; z < spec->high[2]; z++) {
                find_nearest(out, x, y, z);
            }
        }
    }
}

void field_model_free(struct field_model *model)
{
    free(model->obstacles);
    free(model->unknown);
    free(model->squares);
    free(model->nearest);
}

void field_model_scene(struct gpu_env *env, const struct vxd_svdag_format *format,
                       const uint32_t *codes, const uint32_t *other,
                       struct gpu_svdag_scene *out)
{
    size_t n[2] = {0, 0};
    struct gpu_svdag_voxel *voxels[2] = {
        gpu_svdag_grid_voxels(codes, format->depth, &n[0]), NULL};

    if (other == NULL) {
        gpu_svdag_scene_build(env->queue, format, voxels[0], n[0], out);
    } else {
        const struct gpu_svdag_voxel *both[2];

        voxels[1] = gpu_svdag_grid_voxels(other, format->depth, &n[1]);
        both[0] = voxels[0];
        both[1] = voxels[1];
        gpu_svdag_scene_build_two(env->queue, format, both, n, out);
    }
    free(voxels[0]);
    free(voxels[1]);
}

void field_model_update(struct gpu_env *env, struct vxd_field *field,
                        const struct gpu_svdag_scene *scene, uint32_t root)
{
    struct vxd_err err = {0};

    if (vxd_field_update(env->queue, field, scene->svdag, root, 0,
                         vxd_field_n_parts(field), &err) != VXD_OK) {
        (void)fprintf(stderr, "update of a field: %s\n", err.message);
        exit(EXIT_FAILURE);
    }
    gpu_wait(env);
}

static bool is_distance(const struct field_model *model, size_t i, float got)
{
    double reach = model->spec.max_distance;
    double square = abs(model->squares[i]);
    double distance = square > 0 ? sqrt(square) : reach;

    if (model->unknown[i] != 0) {
        return got != got;
    }
    distance *=
        model->obstacles[i] != 0 ? -model->spec.voxel_size_m : model->spec.voxel_size_m;
    return got == (float)distance;
}

size_t field_model_compare(struct gpu_env *env, const struct vxd_field *field,
                           const struct field_model *model)
{
    struct vxd_buffer d_distances = gpu_to_device(env, NULL, model->n * sizeof(float));
    struct vxd_buffer d_squares = gpu_to_device(env, NULL, model->n * sizeof(int32_t));
    struct vxd_buffer d_nearest =
        gpu_to_device(env, NULL, 3 * model->n * sizeof(int32_t));
    struct vxd_field_arrays out = {d_distances.ptr, d_squares.ptr, d_nearest.ptr};
    size_t n_wrong = vxd_field_read(env->queue, field, model->spec.low, model->spec.high,
                                    &out, NULL) == VXD_OK
                         ? 0
                         : 1;
    float *distances = gpu_to_host(env, &d_distances);
    int32_t *squares = gpu_to_host(env, &d_squares);
    int32_t *nearest = gpu_to_host(env, &d_nearest);

    for (size_t i = 0; i < model->n; i++) {
        bool is_same = squares[i] == model->squares[i] &&
                       memcmp(nearest + 3 * i, model->nearest + 3 * i, 12) == 0 &&
                       is_distance(model, i, distances[i]);

        if (!is_same && n_wrong++ == 0) {
            (void)fprintf(
                stderr, "voxel %zu: %d at (%d %d %d), %g, must be %d at (%d %d %d)\n", i,
                squares[i], nearest[3 * i], nearest[3 * i + 1], nearest[3 * i + 2],
                (double)distances[i], model->squares[i], model->nearest[3 * i],
                model->nearest[3 * i + 1], model->nearest[3 * i + 2]);
        }
    }
    free(distances);
    free(squares);
    free(nearest);
    vxd_device_free(env->queue, &d_distances);
    vxd_device_free(env->queue, &d_squares);
    vxd_device_free(env->queue, &d_nearest);
    return n_wrong;
}
